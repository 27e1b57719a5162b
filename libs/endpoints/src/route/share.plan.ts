import type { EndpointSpec } from '@perch/contracts';

export interface ShareWish {
  /** Relative to the others; zero: reached by pinning alone. */
  weight: number;
  /** It can serve. */
  present: boolean;
}

/**
 * Shares that add to 1, in the order of the wishes: weights brought to a sum of 1, and what belongs to those that are
 * missing goes to the heaviest that is left (the first of equals), so that no small share is ever widened by another's
 * fault. When nothing that has weight can serve, `lastResort` takes all (left out: the first that is present), because
 * an answer from it is better than none. All zero when nothing is present.
 */
export function sharesOf(wishes: readonly ShareWish[], lastResort?: number): number[] {
  const total = wishes.reduce((sum, { weight }) => sum + weight, 0);
  const shares = wishes.map(({ weight, present }) => (present && weight > 0 ? weight / total : 0));
  const given = shares.reduce((sum, share) => sum + share, 0);
  const heaviest = shares.indexOf(Math.max(0, ...shares));
  const heir = given > 0 ? heaviest : (lastResort ?? wishes.findIndex(({ present }) => present));
  if (heir >= 0 && heir < shares.length) shares[heir]! += 1 - given;
  return shares;
}

export interface ShareTarget {
  version: number;
  /** The rule wants it. */
  wanted: boolean;
  /** Only a split names it. */
  named?: boolean | undefined;
  unusable: boolean;
}

/**
 * Shares of the versions of an endpoint without a rollout, newest first; they add to 1. `newestFirst` counts those that
 * can serve and that the endpoint has by itself; what only a split names has no share but an explicit weight.
 */
export function shareOut(traffic: EndpointSpec['traffic'], targets: readonly ShareTarget[]): number[] {
  const usable = targets.filter(({ unusable }) => !unusable);
  const own = usable.filter(({ named }) => !named);
  const lastResort = Math.max(0, targets.indexOf((own[0] ?? usable[0])!));
  const { weights, newestFirst } =
    traffic.mode === 'weighted' ? traffic : { weights: newestAlone(own), newestFirst: undefined };
  const weightOf = (target: ShareTarget) =>
    weights?.[String(target.version)] ?? newestFirst?.[own.indexOf(target)] ?? 0;
  const wishes = targets.map((target) => ({ weight: weightOf(target), present: !target.unusable }));
  const versions = new Set(targets.map(({ version }) => String(version)));
  const absent = Object.entries(weights ?? {}).filter(([version]) => !versions.has(version));
  const missing = [...absent.map(([, weight]) => weight), ...(newestFirst ?? []).slice(own.length)];
  const shares = sharesOf([...wishes, ...missing.map((weight) => ({ weight, present: false }))], lastResort);
  return shares.slice(0, targets.length);
}

function newestAlone(own: readonly ShareTarget[]): Record<string, number> {
  const newest = own.find(({ wanted }) => wanted);
  return newest ? { [newest.version]: 1 } : {};
}
