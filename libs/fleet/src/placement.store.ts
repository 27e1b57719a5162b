import { Injectable } from '@nestjs/common';
import type { DesiredModel, TensorSpec } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { Presence } from './server.store.ts';

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

export interface NewPlacement {
  deployment: string;
  server: string;
  endpoint: string;
  tritonModel: string;
}

/** A (deployment, server) pair. */
export interface Pair {
  deployment: string;
  server: string;
}

const pairArrays = (pairs: readonly Pair[]) => [pairs.map((p) => p.deployment), pairs.map((p) => p.server)];
const inPairs = (from: number) =>
  `(deployment_id, server_id) in (select * from unnest($${from}::uuid[], $${from + 1}::uuid[]))`;

/** Which server is to hold which deployment's model. The only SQL for placements. */
@Injectable()
export class PlacementStore {
  async ofEndpoint(tx: Tx, endpoint: string): Promise<Placement[]> {
    return this.ofEndpoints(tx, [endpoint]);
  }

  async ofEndpoints(tx: Tx, endpoints: readonly string[]): Promise<Placement[]> {
    const rows = await tx.query(
      `select p.endpoint, p.deployment_id, p.server_id, s.name, p.triton_model, p.state, p.proved_at is not null as proved,
         p.routed_revision, p.unrouted_revision, s.presence, m.state as model_state, m.reason, m.inputs, m.outputs, m.max_batch_size
       from placements p join servers s on s.id = p.server_id
       left join server_models m on m.server_id = p.server_id and m.triton_model = p.triton_model
       where p.endpoint = any($1) and p.state <> 'released' order by p.server_id`,
      [endpoints],
    );
    return rows.map(toPlacement);
  }

  /** Models must be known before they are placed; equal names have equal bodies, so the first one stays. */
  async describeModel(tx: Tx, name: string, model: DesiredModel): Promise<void> {
    await tx.query('insert into triton_models (name, digest, body) values ($1, $2, $3) on conflict do nothing', [
      name,
      model.digest,
      JSON.stringify(model),
    ]);
  }

  /** Also takes back a placement that was leaving. A server that already serves the same model has proved it. */
  async place(tx: Tx, placements: readonly NewPlacement[]): Promise<void> {
    if (placements.length === 0) return;
    await tx.query(
      `insert into placements (deployment_id, server_id, endpoint, triton_model, proved_at)
       select r.deployment, r.server, r.endpoint, r."tritonModel",
         (select now() from server_models m where m.server_id = r.server and m.triton_model = r."tritonModel" and m.state = 'ready')
       from jsonb_to_recordset($1) as r(deployment uuid, server uuid, endpoint text, "tritonModel" text)
       on conflict (deployment_id, server_id) do update set state = 'active'`,
      [JSON.stringify(placements)],
    );
  }

  async leave(tx: Tx, pairs: readonly Pair[]): Promise<void> {
    if (pairs.length === 0) return;
    await tx.query(
      `update placements set state = 'leaving' where state = 'active' and ${inPairs(1)}`,
      pairArrays(pairs),
    );
  }

  /** Stored with the table that added or left out the pairs, in the same transaction. */
  async markRouted(tx: Tx, revision: number, routed: readonly Pair[], unrouted: readonly Pair[]): Promise<void> {
    if (routed.length > 0)
      await tx.query(
        `update placements set routed_revision = $1, unrouted_revision = null, unrouted_at = null where ${inPairs(2)}`,
        [revision, ...pairArrays(routed)],
      );
    if (unrouted.length > 0)
      await tx.query(`update placements set unrouted_revision = $1, unrouted_at = now() where ${inPairs(2)}`, [
        revision,
        ...pairArrays(unrouted),
      ]);
  }

  /** Pairs of the endpoint that are to go, with what still holds them. `unroutedMs`: since when no table holds them. */
  async leaving(
    tx: Tx,
    endpoint: string,
  ): Promise<(Pair & { routedRevision: number | null; unroutedRevision: number | null; unroutedMs: number | null })[]> {
    const rows = await tx.query(
      `select deployment_id, server_id, routed_revision, unrouted_revision,
         extract(epoch from now() - unrouted_at) * 1000 as unrouted_ms
       from placements where endpoint = $1 and state = 'leaving' order by deployment_id, server_id for update`,
      [endpoint],
    );
    return rows.map((row: Record<string, string | null>) => ({
      deployment: row['deployment_id'],
      server: row['server_id'],
      routedRevision: numberOrNull(row['routed_revision']),
      unroutedRevision: numberOrNull(row['unrouted_revision']),
      unroutedMs: numberOrNull(row['unrouted_ms']),
    }));
  }

  /** The decision to unload; the row stays until the server's document says so. */
  async release(tx: Tx, pairs: readonly Pair[]): Promise<void> {
    await tx.query(
      `update placements set state = 'released' where state = 'leaving' and ${inPairs(1)}`,
      pairArrays(pairs),
    );
  }

  /** What one server is to hold: digests of all models by name. */
  async desiredDigests(tx: Tx, server: string): Promise<{ name: string; digest: string }[]> {
    return tx.query(
      `select distinct m.name, m.digest from placements p join triton_models m on m.name = p.triton_model
       where p.server_id = $1 and p.state <> 'released'`,
      [server],
    );
  }

  async bodies(tx: Tx, names: readonly string[]): Promise<{ name: string; body: DesiredModel }[]> {
    return tx.query('select name, body from triton_models where name = any($1)', [names]);
  }

  async released(tx: Tx, server: string): Promise<Set<string>> {
    const rows: { triton_model: string }[] = await tx.query(
      `select distinct triton_model from placements where server_id = $1 and state = 'released'`,
      [server],
    );
    return new Set(rows.map((row) => row.triton_model));
  }

  async dropReleased(tx: Tx, server: string, models: readonly string[]): Promise<void> {
    await tx.query(`delete from placements where server_id = $1 and state = 'released' and triton_model = any($2)`, [
      server,
      models,
    ]);
  }

  /** Endpoints that have something on this server: all of it, or the models named. */
  async endpointsOn(tx: Tx, server: string, models?: readonly string[]): Promise<string[]> {
    const rows: { endpoint: string }[] = await tx.query(
      `select distinct endpoint from placements
       where server_id = $1 and state <> 'released' and ($2::text[] is null or triton_model = any($2)) order by 1`,
      [server, models ?? null],
    );
    return rows.map((row) => row.endpoint);
  }

  async endpointsOf(tx: Tx, deployments: readonly string[]): Promise<string[]> {
    if (deployments.length === 0) return [];
    const rows: { endpoint: string }[] = await tx.query(
      'select distinct endpoint from placements where deployment_id::text = any($1)',
      [deployments],
    );
    return rows.map((row) => row.endpoint);
  }

  async endpointsLeaving(tx: Tx): Promise<string[]> {
    const rows: { endpoint: string }[] = await tx.query(
      `select distinct endpoint from placements where state = 'leaving' order by 1`,
    );
    return rows.map((row) => row.endpoint);
  }

  async markProved(tx: Tx, server: string, proved: readonly string[], broken: readonly string[]): Promise<void> {
    if (proved.length > 0)
      await tx.query(
        'update placements set proved_at = now() where server_id = $1 and triton_model = any($2) and proved_at is null',
        [server, proved],
      );
    if (broken.length > 0)
      await tx.query('update placements set proved_at = null where server_id = $1 and triton_model = any($2)', [
        server,
        broken,
      ]);
  }

  /** Servers that the routing table must know: those that hold anything. */
  async tableServers(tx: Tx): Promise<{ id: string; http: string; grpc: string }[]> {
    return tx.query(
      `select id, http, grpc from servers s
       where exists (select 1 from placements p where p.server_id = s.id and p.state <> 'released')`,
    );
  }
}

const numberOrNull = (value: string | null | undefined): number | null =>
  value === null || value === undefined ? null : Number(value);

// biome-ignore lint/suspicious/noExplicitAny: a row of the query above
const toPlacement = (row: any): Placement => ({
  endpoint: row.endpoint,
  deployment: row.deployment_id,
  server: row.server_id,
  serverName: row.name,
  tritonModel: row.triton_model,
  state: row.state,
  proved: row.proved,
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
