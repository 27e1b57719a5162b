import { AppError, type Tensors } from '@perch/contracts/plain';
import type { CallContext, FileSource } from '../contract.ts';
import { carryError } from './carried-error.ts';
import type { Ask, CarriedError, Note } from './wire.ts';

/** What a cell may ask of: the call whose hook asks, and files of the bindings. */
export interface AskedOf {
  ctx: CallContext | undefined;
  files: ReadonlyMap<number, FileSource>;
  /** Where errors of ours are kept, so that they come back as what they were. */
  errors: unknown[] | undefined;
}

/** Does what a module asks of its context. `given`: the request's value. Never rejects. */
export async function answerAsk(
  request: Ask,
  given: unknown,
  { ctx, files, errors }: AskedOf,
): Promise<{ value: unknown } | { error: CarriedError }> {
  try {
    if (request.what === 'read') {
      const source = files.get(request.binding);
      if (!source) throw new AppError('unavailable', 'the module is being unloaded');
      return { value: await source.read(request.path) };
    }
    if (!ctx) throw new AppError('timeout', 'the request that asks has ended');
    return { value: await ofCall(request, given, ctx) };
  } catch (error) {
    errors?.push(error);
    return { error: carryError(error, errors && errors.length - 1) };
  }
}

function ofCall(request: Exclude<Ask, { what: 'read' }>, given: unknown, ctx: CallContext): Promise<unknown> {
  if (request.what === 'infer') return ctx.infer(given as Tensors);
  if (request.what === 'stream') return ctx.stream(given);
  const { endpoint, version, contentType, timeoutMs } = request;
  return ctx.serve(endpoint, given, {
    ...(version === undefined ? {} : { version }),
    ...(contentType === undefined ? {} : { contentType }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
}

/** Nothing is told of a request that has ended. */
export function takeNote(ctx: CallContext | undefined, note: Note): void {
  if (!ctx) return;
  if (note.what === 'log')
    ctx.log(note.level, note.message, note.fields === undefined ? undefined : JSON.parse(note.fields));
  else if (note.what === 'flag') ctx.flag(note.name);
  else if (note.what === 'observe') ctx.observe(note.name, note.value);
  else ctx.count(note.name, note.value);
}
