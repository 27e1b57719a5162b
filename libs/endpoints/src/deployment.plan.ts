import type { DeploymentState } from '@perch/contracts';

/** A version that the rule wants, with the digest of what it would be deployed as. */
export interface WantedDeployment {
  version: number;
  digest: string;
}

export interface CurrentDeployment {
  id: string;
  version: number;
  digest: string;
  /** As servers and routers say now: `ready` when it can serve, also one that drains and could come back. No `retired` ones. */
  state: DeploymentState;
  /** It had been let go already. Absent: no. */
  drains?: boolean;
}

export interface DeploymentPlan {
  create: WantedDeployment[];
  /** Wanted ones that are there already; one that was draining comes back. */
  keep: string[];
  /** No longer wanted, and kept serving because a wanted one cannot serve yet. */
  spare: string[];
  drain: string[];
}

export interface SpareRules {
  /** So many deployments should serve; as many as are wanted when left out. */
  least?: number;
  /** Digests that never serve in the place of others. */
  refused?: ReadonlySet<string>;
  /** Digests that stay because splits name them; they serve in the place of others only if they do so already. */
  named?: ReadonlySet<string>;
  /** Ids of those that have the endpoint's own traffic now. */
  routed?: ReadonlySet<string>;
}

/**
 * Which deployments an endpoint should have. What is no longer wanted goes, but as long as too few of the wanted ones
 * serve, the newest serving ones of the others stay in their place: an update that loads slowly, or fails, takes nothing
 * away. What already drains comes back only where nothing else serves, so that traffic never goes back and forth.
 */
export function planDeployments(
  wanted: readonly WantedDeployment[],
  current: readonly CurrentDeployment[],
  { least = wanted.length, refused = new Set(), named = new Set(), routed = new Set() }: SpareRules = {},
): DeploymentPlan {
  const byDigest = new Map(current.map((deployment) => [deployment.digest, deployment]));
  const kept = wanted.map(({ digest }) => byDigest.get(digest)).filter((deployment) => deployment !== undefined);
  const keep = new Set(kept.map(({ id }) => id));
  const serving = kept.filter(({ state }) => state === 'ready').length;
  const left = ({ drains }: CurrentDeployment) => Number(drains ?? false);
  const spare = current
    .filter(({ id, state, digest }) => !keep.has(id) && state === 'ready' && !refused.has(digest))
    .filter(({ id, digest }) => !named.has(digest) || routed.has(id))
    .sort((a, b) => left(a) - left(b) || b.version - a.version || (a.id < b.id ? -1 : 1))
    .slice(0, Math.max(0, least - serving))
    .map(({ id }) => id);
  return {
    create: wanted.filter(({ digest }) => !byDigest.has(digest)),
    keep: [...keep],
    spare,
    drain: current
      .filter(({ id, digest }) => !keep.has(id) && !spare.includes(id) && !named.has(digest))
      .map(({ id }) => id),
  };
}
