import { type ArgumentMetadata, Injectable, type PipeTransform } from '@nestjs/common';
import { parseWith } from '@perch/contracts';
import { ZodType } from 'zod';

const things: Record<ArgumentMetadata['type'], string> = {
  body: 'request body',
  query: 'query',
  param: 'path',
  custom: 'request',
  file: 'file',
  files: 'files',
} as Record<ArgumentMetadata['type'], string>;

/** Parses what carries a schema (`@Body({ schema })`, `@Query({ schema })`, `@Param('n', { schema })`) or throws `invalid`. */
@Injectable()
export class SchemaPipe implements PipeTransform {
  transform(value: unknown, { schema, type, data }: ArgumentMetadata & { schema?: unknown }): unknown {
    if (!(schema instanceof ZodType)) return value;
    return parseWith(schema, value ?? (type === 'param' ? value : {}), data ? `${things[type]} ${data}` : things[type]);
  }
}
