import { AppError, builtinOptions, type ProcessingSpec, splitModule } from '@perch/contracts';
import { parsePairs } from '../reference.ts';
import { type Flags, given, list, text } from './flag-value.plan.ts';

/** JSON where it is JSON, else the text as it stands: `--option maxTokens=256`, `--option padding={"to":128}`. */
export const looseValue = (value: string): unknown => {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
};

/** The word for "nothing of its own": what the version carries is run. */
const carried = 'version';

/** `--processing` as it was typed: a built-in's name, else a module (`name@3`, or `name` for the newest). */
export const processingOfName = (name: string): ProcessingSpec =>
  Object.hasOwn(builtinOptions, name) ? { builtin: name } : { module: name };

/** True: the flags take away what was said before. */
export const leavesProcessing = (flags: Flags): boolean => text(flags, 'processing') === carried;

/** Options as one JSON object, with pairs over them; undefined: no flag speaks of any. */
function optionsOf(flags: Flags): { whole: Record<string, unknown> | undefined; pairs: Record<string, unknown> } {
  const pairs = Object.fromEntries(
    Object.entries(parsePairs(list(flags, 'option'), '--option')).map(([key, value]) => [key, looseValue(value)]),
  );
  const json = text(flags, 'processingOptions');
  if (json === undefined) return { whole: undefined, pairs };
  const value = looseValue(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AppError('invalid', `--processing-options: wants a JSON object such as {"threshold": 0.5}, got ${json}`);
  return { whole: value as Record<string, unknown>, pairs };
}

/** Whether options and isolation still fit: the same built-in, or the same module under another number. */
const isSameKind = (a: ProcessingSpec, b: ProcessingSpec): boolean =>
  a.module !== undefined && b.module !== undefined
    ? splitModule(a.module).name === splitModule(b.module).name
    : a.builtin === b.builtin && a.module === b.module;

/**
 * What `--processing`, `--isolation`, `--processing-options` and `--option` make of what was said before; undefined where
 * no flag speaks and nothing was said. Another number of a module keeps its options and where it runs.
 */
export function processingFlags(flags: Flags, before: ProcessingSpec | undefined): ProcessingSpec | undefined {
  const name = text(flags, 'processing');
  const isolation = text(flags, 'isolation') as ProcessingSpec['isolation'];
  const { whole, pairs } = optionsOf(flags);
  const speaks = isolation ?? whole ?? Object.keys(pairs)[0];
  if (name === undefined && speaks === undefined) return before;
  if (name === carried) {
    if (speaks === undefined) return undefined;
    throw new AppError('invalid', '--processing version: the version says how; --isolation and options want a name');
  }
  const named = name === undefined ? before : processingOfName(name);
  if (!named) {
    const flag = isolation !== undefined ? '--isolation' : whole ? '--processing-options' : '--option';
    throw new AppError('invalid', `${flag}: wants --processing NAME besides`);
  }
  const kept = before && isSameKind(before, named) ? before : undefined;
  const options = { ...(whole ?? kept?.options), ...pairs };
  return {
    ...(named.builtin === undefined ? { module: named.module } : { builtin: named.builtin }),
    ...given({ isolation: isolation ?? (named.builtin === undefined ? kept?.isolation : undefined) }),
    ...(Object.keys(options).length > 0 || whole ? { options } : {}),
  };
}
