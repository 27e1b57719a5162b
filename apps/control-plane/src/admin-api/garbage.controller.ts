import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { type Actor, type CollectGarbage, collectGarbage, garbageReport } from '@perch/contracts';
import { GarbageService } from './garbage.service.ts';
import { Allow, Answers, By } from './http.ts';

@Allow('admin')
@Controller('api/v1/gc')
export class GarbageController {
  constructor(private readonly garbage: GarbageService) {}

  @Post()
  @HttpCode(200)
  @Answers(garbageReport, 'Remove what nobody needs any more; with dryRun only list it')
  collect(@By() actor: Actor, @Body({ schema: collectGarbage }) body: CollectGarbage) {
    return this.garbage.collect(actor, body);
  }
}
