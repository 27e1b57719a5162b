import type { DeploymentState, EndpointSpec, RouteRollout, Signature } from '@perch/contracts';

/** Kind of work of whoever moves traffic; keys are names of endpoints. */
export const rolloutWork = 'rollout';

/** What the endpoint's pass says: the newest version its rule wants, with the digest it is, or would be, deployed as. */
export interface TrafficWish {
  /** Null: the rule wants nothing that was not refused. */
  newest: { version: number; digest: string } | null;
}

/** What routers are told of a rollout, without the ids of its deployments: the pass knows those by their digests. */
export type ForcedRollout = Omit<RouteRollout, 'stable' | 'candidate'>;

/** What a rollout says about the traffic of an endpoint. Deployments are named by their digests. */
export interface TrafficForce {
  /** Has the traffic that the candidate has not. Null: there is none yet; the pass sets it as soon as something serves. */
  stable: string | null;
  candidate: string | null;
  /** Stay loaded without traffic: the old version within its rollback window. */
  keep: string[];
  /** Of the candidate, 0 to 1. */
  share: number;
  /** What routers are to count and how; null: they judge nobody. */
  rollout: ForcedRollout | null;
  /** The candidate gets copies of stable's requests; for people's eyes. */
  shadowing: boolean;
  /** Who holds automatic updates until `resume`; null: nobody. */
  held: string | null;
}

export const noForce: TrafficForce = {
  stable: null,
  candidate: null,
  keep: [],
  share: 0,
  rollout: null,
  shadowing: false,
  held: null,
};

export const noWish: TrafficWish = { newest: null };

export interface TrafficDeployment {
  id: string;
  version: number;
  digest: string;
  state: DeploymentState;
  /** Why it failed, or what it waits for. */
  reason: string | null;
  /** Of the state. */
  since: Date;
  /** As its servers tell, else as its settings declare; null: its files could not be laid out. */
  signature: Signature | null;
}

/** All that a rollout has to know of its endpoint. */
export interface TrafficSight {
  endpoint: string;
  /** False: it was removed, or never was. */
  exists: boolean;
  generation: number;
  spec: EndpointSpec | null;
  wish: TrafficWish;
  force: TrafficForce;
  /** Not retired ones, newest version first. */
  deployments: TrafficDeployment[];
  /** Digests that are never deployed again by themselves. */
  quarantine: string[];
}

/** A deployment that is there, as the pass has just seen it. */
interface SeenDeployment {
  id: string;
  version: number;
  digest: string;
  state: DeploymentState;
}

/** Whatever can be deployed: a version of the rule, or what an earlier deployment was made from. */
interface Deployable {
  version: number;
  digest: string;
}

export interface TrafficWorld<Wish extends Deployable> {
  force: TrafficForce;
  /** What the rule wants and nobody refused, newest first. */
  rule: readonly Wish[];
  /** Versions that the rule has and that were refused as they would be deployed now. */
  refusals: readonly { version: number }[];
  /** Retired deployments that are named by their digests and can be deployed again as they were. */
  stored: readonly Wish[];
  /** Who has the traffic now: ids of deployments. */
  routed: readonly { deployment: string; share: number }[];
  refused: ReadonlySet<string>;
  known: readonly SeenDeployment[];
}

/** What a pass makes of it. Doing it again on what it leads to changes nothing. */
export interface TrafficPlan {
  /** Digests that should be deployed, the stable one first. */
  wanted: Deployable[];
  wish: TrafficWish;
  /** To be kept from now on; the one that was given where nothing had to be set. */
  force: TrafficForce;
}

const digestsOf = ({ stable, candidate, keep }: TrafficForce): string[] =>
  [stable, candidate, ...keep].filter((digest) => digest !== null);

/** Digests that a rollout names and that neither the rule nor what is deployed accounts for. */
export const missingDigests = (
  force: TrafficForce,
  rule: readonly Deployable[],
  known: readonly Deployable[],
): string[] => {
  const there = new Set([...rule, ...known].map(({ digest }) => digest));
  return digestsOf(force).filter((digest) => !there.has(digest));
};

/** Who serves when nobody was told to: whoever has most of the traffic now, else the newest of the rule that can, else the newest. */
function pickStable({ routed, known, rule, refused }: TrafficWorld<Deployable>): string | null {
  const ready = known
    .filter(({ state, digest }) => state === 'ready' && !refused.has(digest))
    .sort((a, b) => b.version - a.version || (a.id < b.id ? -1 : 1));
  const heaviest = [...routed].sort((a, b) => b.share - a.share).map(({ deployment }) => deployment);
  const serving = heaviest.flatMap((id) => ready.find((one) => one.id === id) ?? []);
  const wanted = rule.flatMap(({ digest }) => ready.find((one) => one.digest === digest) ?? []);
  return [...serving, ...wanted, ...ready][0]?.digest ?? null;
}

/**
 * Which deployments share the traffic of a progressive endpoint, and which should be there: what its rollout names, the
 * newest that the rule wants, and the rule's others. A rollout decides about all but one thing: without any stable one,
 * whoever serves becomes it. What was refused is as if it had never been named; a rule without any version ends it all.
 */
export function planTraffic<Wish extends Deployable>(world: TrafficWorld<Wish>): TrafficPlan {
  const { rule, refusals, stored, known, refused } = world;
  if (rule.length + refusals.length === 0)
    return { wanted: [], wish: noWish, force: { ...noForce, held: world.force.held } };
  const byDigest = new Map<string, Deployable>([...known, ...stored, ...rule].map((one) => [one.digest, one]));
  const usable = (digest: string | null) =>
    digest !== null && byDigest.has(digest) && !refused.has(digest) ? digest : null;
  const stable = usable(world.force.stable) ?? pickStable(world);
  const force = world.force.stable === stable ? world.force : { ...world.force, stable };
  const named = [stable, usable(force.candidate), ...force.keep.map(usable)].filter((digest) => digest !== null);
  const wishes = withoutStepBack(rule, refusals, stable === null ? undefined : byDigest.get(stable));
  const follows =
    force.held === null || named.length === 0
      ? wishes
      : wishes.filter(({ digest }) => known.some((one) => isThere(one, digest)));
  const digests = [...new Set([...named, ...follows.map(({ digest }) => digest)])];
  const [newest] = wishes;
  return {
    wanted: digests.map((digest) => byDigest.get(digest)!),
    wish: { newest: newest ? { version: newest.version, digest: newest.digest } : null },
    force,
  };
}

/**
 * When new settings were refused for the version that serves, it serves on as it is: the rule does not go on to an older
 * version with these settings.
 */
function withoutStepBack(
  rule: readonly Deployable[],
  refusals: readonly { version: number }[],
  stable: Deployable | undefined,
): readonly Deployable[] {
  if (!stable || (rule[0]?.version ?? 0) >= stable.version) return rule;
  return refusals.some(({ version }) => version === stable.version) ? [stable, ...rule.slice(0, -1)] : rule;
}

/** While automatic updates are held, the rule keeps what it has and adds nothing. */
const isThere = ({ digest: has, state }: SeenDeployment, digest: string) => has === digest && state !== 'draining';
