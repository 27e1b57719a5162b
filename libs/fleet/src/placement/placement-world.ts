import type { ServerFacts, ServerUsage } from '@perch/contracts';
import type { Presence } from '../server.store.ts';
import type { Memory } from './memory.plan.ts';
import type { ModelVariant } from './variant.ts';

/** A server as placement looks at it. Facts and usage that nobody reported rule nothing out. */
export interface PlannedServer {
  id: string;
  name: string;
  presence: Presence;
  labels: Readonly<Record<string, string>>;
  /** What it is and holds is known; before its first report nothing is placed on it. */
  reported: boolean;
  /** It loses what it holds, as soon as others serve it, and gets nothing new. `forced`: at once. */
  drain: 'forced' | 'orderly' | null;
  /** It has no agent: what it holds is not ours to decide. */
  external: boolean;
  /** It has no agent, and takes models whose files are not larger than so much; null: any. */
  inlineBytes?: number | null;
  /** What memory was measured on: the GPU's name, or `cpu`. */
  device: string;
  facts: ServerFacts | null;
  usage: ServerUsage | null;
  /** Models placed on it now by anybody, without those that are being moved away. */
  models: number;
  /** Placements on it that are being moved away. */
  moving: number;
  /** What all that is placed on it takes, measured or guessed. */
  placed: Memory;
}

export interface PlannedDeployment {
  id: string;
  endpoint: string;
  replicas: number;
  minReplicas: number;
  /** Only servers with all of these. Absent: any. */
  labels?: Readonly<Record<string, string>>;
  /** In the order of preference; each server gets the first one that it can run. */
  variants: readonly ModelVariant[];
  /** So many more of its size are likely to come beside it: servers with room for them are preferred. Absent = none. */
  spare?: number;
}

export interface CurrentPlacement {
  deployment: string;
  server: string;
  tritonModel: string;
  /** The server serves it now. */
  ready: boolean;
  /** The model server's own words why it cannot be loaded there; null: nothing of the kind. */
  failure: string | null;
  /** On its way out: the model is still there, but the placement counts no more. */
  leaving?: boolean;
  /** Serves until the one that was placed in its stead is ready. */
  yields?: boolean;
}

/** A literal name that stands in a server's document. */
export interface TakenName {
  server: string;
  name: string;
  tritonModel: string;
  endpoint: string;
  usedModel: string | null;
}

/** What is known of the models to be placed, beside their variants. */
export interface ModelFacts {
  /** Measured memory by `<digest> <device>`. */
  measured: ReadonlyMap<string, Memory>;
  /** `<server> <triton model>` of models that stay on that server whatever happens here. */
  held: ReadonlySet<string>;
  taken: readonly TakenName[];
  /** Why a Triton model failed for good on a server, by `<server> <triton model>`. */
  failures: ReadonlyMap<string, string>;
}

export const noFacts: ModelFacts = { measured: new Map(), held: new Set(), taken: [], failures: new Map() };

export interface Placing {
  deployment: string;
  server: string;
  variant: ModelVariant;
  /** The variant that failed there before, with the model server's words. */
  instead: { tritonModel: string; reason: string } | null;
}

export interface PlacementPlan {
  add: Placing[];
  leave: { deployment: string; server: string }[];
  /** Placements to be moved away once the one in their stead is ready, and those that stay after all. */
  yields: { deployment: string; server: string; yields: boolean }[];
  /** Why a deployment has fewer servers than it wants, by deployment. */
  short: Map<string, string>;
  /** What a placement on a server that is drained, or that is being moved, still waits for. */
  waits: { deployment: string; server: string; waits: string }[];
}
