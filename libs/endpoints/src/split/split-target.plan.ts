import { splitVersionLabel } from '../resolve/name.plan.ts';

/** Where a target of a split points: an endpoint as a whole (`version` null), or one version of it. */
export interface SplitPlace {
  endpoint: string;
  version: number | null;
}

/**
 * What a target means, as `/serve/<target>` does: the endpoint of that name first, then a version of the endpoint above.
 * Undefined: there is neither.
 */
export function placeOf(target: string, exists: (endpoint: string) => boolean): SplitPlace | undefined {
  if (exists(target)) return { endpoint: target, version: null };
  const label = splitVersionLabel(target);
  return label && exists(label.parent) ? { endpoint: label.parent, version: label.version } : undefined;
}

/** `text/` and `text` are one prefix. */
export const barePrefix = (prefix: string): string => prefix.replace(/\/$/, '');

/** Whether an endpoint lies below a prefix of whole segments, or is it: `text` holds `text` and `text/a`, never `texts`. */
export const isBelow = (endpoint: string, prefix: string): boolean =>
  endpoint === prefix || endpoint.startsWith(`${prefix}/`);

/** Names of endpoints that a target may mean. */
export function namesIn(target: string): string[] {
  const label = splitVersionLabel(target);
  return label ? [target, label.parent] : [target];
}

const numberText = /^\d+$/;

function compareSegments(a: string, b: string): number {
  const numbers = [numberText.test(a), numberText.test(b)];
  if (numbers[0] && numbers[1]) return Number(a) - Number(b);
  if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * The order of `newestFirst` over addresses `<endpoint>/<version>`, the first one newest: segment by segment, numbers by
 * their value, words by the alphabet from its end, a word before a number. So the versions of one endpoint come highest
 * first, endpoints `a/9` and `a/10` as if they were versions of `a`, and all of `text/b` before all of `text/a`. This is
 * the order of clearml-serving 1.3, except that it knows numbers in the last segment alone.
 */
export function newestAddressFirst(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const order = compareSegments(right[at]!, left[at]!);
    if (order !== 0) return order;
  }
  return right.length - left.length;
}
