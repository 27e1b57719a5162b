import { AppError, type SplitSpecInput } from '@perch/contracts';
import { type Flags, given, list, numbers, text } from './flag-value.plan.ts';

/** `text/a=90`; the weight may be left out where there is one target alone. */
function readTarget(pair: string, alone: boolean): [target: string, weight: number] {
  const at = pair.lastIndexOf('=');
  if (at < 0 && alone) return [pair, 1];
  if (at < 1) throw new AppError('invalid', `--target: wants target=weight such as text/a=90, got "${pair}"`);
  return [pair.slice(0, at), weightOf(pair.slice(at + 1), '--target')];
}

/** A finite number that is not below zero; anything else is said here, because JSON has no words for it. */
export function weightOf(value: string, flag: string): number {
  const weight = value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isFinite(weight)) throw new AppError('invalid', `${flag}: wants a number for a weight, got "${value}"`);
  if (weight < 0) throw new AppError('invalid', `${flag}: a weight is not below zero, got ${value}`);
  return weight;
}

/**
 * The specification of a split that flags name, over what `before` says. Targets given replace targets and prefix, and a
 * prefix the other way round. The control plane validates the result.
 */
export function splitFromFlags(name: string, flags: Flags, before: Partial<SplitSpecInput> = {}): SplitSpecInput {
  const { targets: _t, weights: _w, targetPrefix, newestFirst, ...rest } = before;
  const header = text(flags, 'sticky');
  const access = text(flags, 'access') as 'key' | undefined;
  const shared = given({
    sticky: header === undefined ? before.sticky : header === 'none' ? undefined : { header },
    access: access === undefined ? before.access : { inference: access },
    description: text(flags, 'description') ?? before.description,
  });
  const { sticky: _s, ...others } = rest;
  return { ...others, ...shared, kind: 'Split', name, ...sharing(flags, before, { targetPrefix, newestFirst }) };
}

function sharing(
  flags: Flags,
  before: Partial<SplitSpecInput>,
  below: Pick<SplitSpecInput, 'targetPrefix' | 'newestFirst'>,
): Partial<SplitSpecInput> {
  const pairs = list(flags, 'target');
  const targetPrefix = text(flags, 'prefix');
  const newest = text(flags, 'newestFirst');
  if (pairs && (targetPrefix !== undefined || newest !== undefined))
    throw new AppError('invalid', 'give --target (each with a weight), or --prefix with --newest-first, not both');
  if (pairs) {
    const read = pairs.map((pair) => readTarget(pair, pairs.length === 1));
    return { targets: read.map(([target]) => target), weights: read.map(([, weight]) => weight) };
  }
  if (targetPrefix === undefined && newest === undefined)
    return given({ targets: before.targets, weights: before.weights, ...below }) ?? {};
  return given({
    targetPrefix: targetPrefix ?? below.targetPrefix,
    newestFirst: newest === undefined ? below.newestFirst : numbers(newest, '--newest-first'),
  })!;
}
