import type { EndpointSpec, Route } from '@perch/contracts';
import type { TrafficForce } from './traffic.plan.ts';

/** Who gets what, and how routers judge it. */
export type ArmChoice = Pick<Route, 'arms' | 'sticky' | 'rollout'>;

interface Armed {
  deployment: string;
  digest: string;
  /** The rule or a rollout wants it. */
  wanted: boolean;
  /** Routers cannot serve it. */
  unusable: boolean;
}

/**
 * The arms that a rollout asks for. An arm that cannot serve leaves its share to the other; where neither can, whatever
 * else is there takes all, first what served before (`keep`), then what is wanted. A trial is told to routers only while
 * both arms can serve.
 */
export function shareForced(
  spec: Pick<EndpointSpec, 'name' | 'traffic'>,
  { stable, candidate, keep, share, rollout }: TrafficForce,
  targets: readonly Armed[],
): ArmChoice {
  const { sticky } = spec.traffic;
  const usable = targets.filter(({ unusable }) => !unusable);
  const find = (digest: string | null) => usable.find((target) => target.digest === digest);
  const stood = find(stable);
  const tried = candidate === stable ? undefined : find(candidate);
  const pinned = sticky ? { sticky: { header: sticky.header.toLowerCase(), salt: rollout?.salt ?? spec.name } } : {};
  if (!stood || !tried) {
    const only = stood ?? tried ?? keep.map(find).find((one) => one) ?? fallback(usable) ?? targets[0];
    return { arms: only ? [{ deployment: only.deployment, share: 1 }] : [], ...pinned };
  }
  const ids = { stable: stood.deployment, candidate: tried.deployment };
  return { arms: split(ids, share), ...pinned, ...(rollout ? { rollout: { ...rollout, ...ids } } : {}) };
}

const fallback = (usable: readonly Armed[]) => usable.find(({ wanted }) => wanted) ?? usable[0];

function split(ids: { stable: string; candidate: string }, share: number): Route['arms'] {
  const part = Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
  return [
    { deployment: ids.candidate, share: part },
    { deployment: ids.stable, share: 1 - part },
  ].filter((arm) => arm.share > 0);
}
