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
