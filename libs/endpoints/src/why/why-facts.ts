import type { DeploymentState, EndpointSpec, EndpointStatus, Route, WhyStep } from '@perch/contracts';
import type { PlacementSight } from '@perch/fleet';
import type { VersionFacts } from '../resolve/version.plan.ts';
import { type NamingSplit, namedVersions } from '../split/split-member.plan.ts';
import type { WhyTraffic } from './why-traffic.plan.ts';

/** A router as far as it explains what is served. */
export interface WhyRouter {
  name: string;
  live: boolean;
  lastSeenAt: string | null;
  lineage: string | null;
  revision: number | null;
  held: boolean;
  problems: Readonly<Record<string, string>>;
  /** What it has not loaded yet, by deployment; absent = nothing. */
  loading?: Readonly<Record<string, string>>;
}

export interface WhyDeployment {
  id: string;
  version: number;
  state: DeploymentState;
  reason: string | null;
  since: string;
  /** Its files can be laid out. */
  deployable: boolean;
  /** Of a module alone: see `processingWords`. */
  module?: string;
  /** It has no model, so no server is asked for it. */
  modelless?: true;
}

/** All that one answer looks at. Times are ISO texts. */
export interface WhyFacts {
  name: string;
  generation: number;
  /** Null: the endpoint was removed. */
  spec: EndpointSpec | null;
  changedAt: string;
  changedBy: string;
  status: EndpointStatus;
  /** Those that name it or versions of it; absent = none. Weights of one of its own name are in `spec` already. */
  splits?: readonly NamingSplit[];
  /** Of its model, in whatever state; none: there is no such model. */
  versions: readonly VersionFacts[];
  /** Not retired ones, of all versions. */
  deployments: readonly WhyDeployment[];
  placements: readonly PlacementSight[];
  /** As it should stand in the routing table, and as it was published, since which revision. */
  wantedRoute: Route | null;
  published: { route: Route | null; since: number | null };
  lineage: string;
  routers: readonly WhyRouter[];
  /** Of a progressive endpoint; absent: it is none. */
  traffic?: WhyTraffic;
}

export const okStep = (step: WhyStep['step'], message: string, since: string | null = null): WhyStep => ({
  step,
  state: 'ok',
  message,
  since,
  whatToDo: null,
});

/** The split that names this version, if one does. */
export const splitNaming = ({ name, spec, splits = [] }: WhyFacts, version: number): NamingSplit | undefined =>
  splits.find((split) => spec && namedVersions({ name, model: spec.model }, [split]).includes(version));
