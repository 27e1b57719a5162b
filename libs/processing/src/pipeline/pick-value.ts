import { AppError, isPick, type Pick, type PickStep, type PipelineValue, parsePick } from '@perch/contracts';

/** What picks may point at while a pipeline runs. */
export interface PickScope {
  body: unknown;
  /** Results by node; null of one that was skipped. */
  results: ReadonlyMap<string, unknown>;
  item?: unknown;
  index?: number;
}

/** A value of a spec with its picks read, once for all requests. */
export type ReadValue = (scope: PickScope) => unknown;

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Buffer.isBuffer(value) && !Array.isArray(value);

/** Throws `invalid` where the client's body lacks it, `upstream` where a node's result does. */
function absent({ text, root }: Pick): AppError {
  const what = root === 'body' ? "the request's body has nothing there" : `what ${root} answered has nothing there`;
  return new AppError(root === 'body' ? 'invalid' : 'upstream', `${text}: ${what}`);
}

function stepInto(value: unknown, step: Exclude<PickStep, 'all'>): unknown {
  if ('field' in step) return isPlain(value) && Object.hasOwn(value, step.field) ? value[step.field] : undefined;
  return Array.isArray(value) ? value.at(step.index) : undefined;
}

function follow(value: unknown, pick: Pick, from: number): unknown {
  let here = value;
  for (let at = from; at < pick.steps.length; at += 1) {
    // what was skipped, or is null by its own account, is null all the way down
    if (here === null) return null;
    const step = pick.steps[at]!;
    if (step === 'all') {
      if (Array.isArray(here)) return here.map((one) => follow(one, pick, at + 1));
      here = undefined;
    } else here = stepInto(here, step);
    if (here === undefined) {
      if (pick.optional) return null;
      throw absent(pick);
    }
  }
  return here;
}

function rootValue({ root }: Pick, scope: PickScope): unknown {
  if (root === 'body') return scope.body;
  if (root === 'item') return scope.item;
  return root === 'index' ? scope.index : scope.results.get(root);
}

const isFixed = (text: string) => !isPick(text);

/** Throws `invalid` for what is no pick; a checked spec holds none. */
export function readPick(text: string): ReadValue {
  const pick = parsePick(text);
  if (typeof pick === 'string') throw new AppError('invalid', pick);
  return (scope) => follow(rootValue(pick, scope) ?? null, pick, 0);
}

/** The same for a value of any shape. Parts without picks are the spec's own: nobody changes them. */
export function readValue(value: PipelineValue): ReadValue {
  if (typeof value === 'string') {
    if (!isFixed(value)) return readPick(value);
    const text = value.startsWith('$$') ? value.slice(1) : value;
    return () => text;
  }
  if (typeof value !== 'object' || value === null) return () => value;
  if (Array.isArray(value)) {
    const parts = value.map(readValue);
    return (scope) => parts.map((part) => part(scope));
  }
  const fields = Object.entries(value).map(([key, one]) => [key, readValue(one)] as const);
  return (scope) => Object.fromEntries(fields.map(([key, read]) => [key, read(scope)]));
}
