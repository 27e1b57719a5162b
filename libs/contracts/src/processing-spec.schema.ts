import { z } from 'zod';

const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}(\/[a-z0-9][a-z0-9._-]{0,63}){0,3}$/;
export const moduleName = z
  .string()
  .regex(
    namePattern,
    'a module name is 1 to 4 segments joined by "/", each 1 to 64 of a-z 0-9 . _ - starting with a letter or digit',
  )
  .meta({ id: 'ModuleName' });

/** `name@3`, or `name` for the newest one at the time when it is written into a spec. */
export const moduleReference = z
  .string()
  .regex(
    new RegExp(`${namePattern.source.slice(0, -1)}(@[1-9][0-9]{0,9})?$`),
    'a module is given as name or name@number',
  );

/** What stands between a module's faults and others: see libs/processing/README.md. */
export const isolations = ['inline', 'worker', 'process'] as const;
export const isolation = z.enum(isolations);
export type Isolation = z.infer<typeof isolation>;

/**
 * Pre- and postprocessing: a built-in with options, or a registered module (`name@3`; a bare name is written as the
 * newest number). Of an endpoint, or of a version, which endpoints follow that say nothing themselves.
 */
export const processingSpec = z
  .strictObject({
    builtin: z.string().max(64).optional(),
    module: moduleReference.optional(),
    /** Of a module; absent: `worker`. */
    isolation: isolation.optional(),
    options: z.record(z.string(), z.unknown()).optional(),
  })
  .refine((value) => !value.builtin !== !value.module, 'give either builtin or module')
  .meta({ id: 'ProcessingSpec' });
export type ProcessingSpec = z.infer<typeof processingSpec>;

/** `name@3` in its parts; `number` undefined: the newest. */
export function splitModule(reference: string): { name: string; number: number | undefined } {
  const at = reference.lastIndexOf('@');
  if (at < 0) return { name: reference, number: undefined };
  return { name: reference.slice(0, at), number: Number(reference.slice(at + 1)) };
}
