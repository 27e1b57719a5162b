import 'reflect-metadata';
import { type DynamicModule, Module } from '@nestjs/common';
import type { ChildWords } from './child-program.ts';
import { StackService, UP_OPTIONS, UP_WORDS } from './stack.service.ts';
import type { UpOptions } from './up.config.ts';

@Module({})
export class UpModule {
  static forRoot(options: UpOptions, words: ChildWords): DynamicModule {
    return {
      module: UpModule,
      providers: [{ provide: UP_OPTIONS, useValue: options }, { provide: UP_WORDS, useValue: words }, StackService],
    };
  }
}
