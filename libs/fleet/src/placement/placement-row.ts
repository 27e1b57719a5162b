import type { TensorSpec } from '@perch/contracts';
import type { Presence } from '../server.store.ts';

export type PlacementState = 'active' | 'leaving' | 'released';

/** One deployment on one server, with what the server says about the model. Times are ISO texts. */
export interface Placement {
  endpoint: string;
  deployment: string;
  server: string;
  serverName: string;
  tritonModel: string;
  state: PlacementState;
  /** The server once proved it ready, and has not proved it broken since. */
  proved: boolean;
  /** It serves until the one that was placed in its stead is ready. */
  yields?: boolean;
  /** What a placement on a server that is drained still waits for, as last planned. */
  waits?: string | null;
  /** Variants that failed there for good before this one. */
  earlier?: { tritonModel: string; reason: string }[];
  routedRevision: number | null;
  unroutedRevision: number | null;
  presence: Presence;
  observed: {
    state: string;
    reason: string | null;
    inputs: TensorSpec[] | null;
    outputs: TensorSpec[] | null;
    maxBatchSize: number | null;
  } | null;
}

export const numberOrNull = (value: string | null | undefined): number | null =>
  value === null || value === undefined ? null : Number(value);

/** From a row of `PlacementStore.ofEndpoints`. */
// biome-ignore lint/suspicious/noExplicitAny: a row of that query
export const toPlacement = (row: any): Placement => ({
  endpoint: row.endpoint,
  deployment: row.deployment_id,
  server: row.server_id,
  serverName: row.name,
  tritonModel: row.triton_model,
  state: row.state,
  proved: row.proved,
  yields: row.yields,
  waits: row.waits,
  earlier: row.earlier,
  routedRevision: numberOrNull(row.routed_revision),
  unroutedRevision: numberOrNull(row.unrouted_revision),
  presence: row.presence,
  observed: row.model_state
    ? {
        state: row.model_state,
        reason: row.reason,
        inputs: row.inputs,
        outputs: row.outputs,
        maxBatchSize: row.max_batch_size,
      }
    : null,
});
