import { Injectable } from '@nestjs/common';
import type { DesiredModel } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { guessBytes, runsOnGpu } from './memory.plan.ts';
import { numberOrNull, type Placement, type PlacementState, toPlacement } from './placement-row.ts';
import type { ModelVariant } from './variant.ts';

export interface NewPlacement {
  deployment: string;
  server: string;
  endpoint: string;
  tritonModel: string;
  /** What must lie beside it: names in the server's document, and the models they stand for. */
  needs: { name: string; tritonModel: string; usedModel: string | null }[];
  /** The variant that failed there for good before. */
  instead?: { tritonModel: string; reason: string } | null;
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
      `select p.endpoint, p.deployment_id, p.server_id, s.name, p.triton_model, p.state, p.proved_at is not null as proved, p.yields, p.waits, p.earlier,
         p.routed_revision, p.unrouted_revision, s.presence, m.state as model_state, m.reason, m.inputs, m.outputs, m.max_batch_size
       from placements p join servers s on s.id = p.server_id
       left join server_models m on m.server_id = p.server_id and m.triton_model = p.triton_model
       where p.endpoint = any($1) and p.state <> 'released' order by p.server_id`,
      [endpoints],
    );
    return rows.map(toPlacement);
  }

  /** Models must be known before they are placed; equal names have equal bodies, so the first one stays; a declared size is news. */
  async describeModel(tx: Tx, name: string, model: DesiredModel, declaredBytes: number | null = null): Promise<void> {
    await tx.query(
      `insert into triton_models (name, digest, body, guess_bytes, on_gpu) values ($1, $2, $3, $4, $5)
       on conflict (name) do update set described_at = now(),
         guess_bytes = case when $6 then excluded.guess_bytes else triton_models.guess_bytes end
       where triton_models.described_at < now() - interval '1 hour' or ($6 and triton_models.guess_bytes <> excluded.guess_bytes)`,
      [
        name,
        model.digest,
        JSON.stringify(model),
        model.engine.platform === 'ensemble' ? 0 : guessBytes(model, declaredBytes),
        runsOnGpu(model),
        declaredBytes !== null,
      ],
    );
  }

  /** A variant with all that it needs. */
  async describeVariant(tx: Tx, { tritonModel, model, needs, requires }: ModelVariant): Promise<void> {
    for (const needed of needs) await this.describeModel(tx, needed.tritonModel, needed.model);
    await this.describeModel(tx, tritonModel, model, requires.memoryBytes);
  }

  /**
   * Also takes back a placement that was leaving, and puts another variant in the place of one that failed. A server
   * that already serves the same model has proved it. True: one of them is served already.
   */
  async place(tx: Tx, placements: readonly NewPlacement[]): Promise<boolean> {
    if (placements.length === 0) return false;
    const rows = JSON.stringify(placements);
    if (placements.some(({ instead }) => instead)) await this.dropSwitched(tx, rows);
    const placed: { proved: boolean }[] = await tx.query(
      `insert into placements (deployment_id, server_id, endpoint, triton_model, earlier, proved_at)
       select r.deployment, r.server, r.endpoint, r."tritonModel",
         case when r.instead ? 'reason' then jsonb_build_array(r.instead) else '[]' end,
         (select now() from server_models m where m.server_id = r.server and m.triton_model = r."tritonModel" and m.state = 'ready')
       from jsonb_to_recordset($1) as r(deployment uuid, server uuid, endpoint text, "tritonModel" text, instead jsonb)
       on conflict (deployment_id, server_id) do update set state = 'active', yields = false, waits = null, placed_at = now(),
         triton_model = excluded.triton_model, earlier = placements.earlier || excluded.earlier,
         proved_at = case when placements.triton_model = excluded.triton_model then placements.proved_at else excluded.proved_at end
       returning proved_at is not null as proved`,
      [rows],
    );
    await this.placeNeeds(tx, placements);
    return placed.some(({ proved }) => proved);
  }

  /** What another variant takes the place of may vanish from the server's document: that is decided here. */
  private async dropSwitched(tx: Tx, rows: string): Promise<void> {
    await tx.query(
      `with wanted as (select * from jsonb_to_recordset($1) as r(deployment uuid, server uuid, "tritonModel" text)),
       switched as (
         select p.* from placements p join wanted w on w.deployment = p.deployment_id and w.server = p.server_id
         where p.triton_model <> w."tritonModel")
       insert into dropped_models (server_id, name)
       select server_id, triton_model from switched
       union select n.server_id, n.name from placement_needs n join switched s using (deployment_id, server_id)
       on conflict do nothing`,
      [rows],
    );
    await tx.query(
      `delete from placement_needs n using jsonb_to_recordset($1) as r(deployment uuid, server uuid, instead jsonb)
       where n.deployment_id = r.deployment and n.server_id = r.server and r.instead ? 'reason'`,
      [rows],
    );
  }

  private async placeNeeds(tx: Tx, placements: readonly NewPlacement[]): Promise<void> {
    const needs = placements.flatMap(({ deployment, server, needs: all }) =>
      all.map((needed) => ({ deployment, server, ...needed })),
    );
    if (needs.length === 0) return;
    await tx.query(
      `insert into placement_needs (deployment_id, server_id, name, triton_model, used_model)
       select deployment, server, name, "tritonModel", "usedModel" from jsonb_to_recordset($1)
         as r(deployment uuid, server uuid, name text, "tritonModel" text, "usedModel" text)
       on conflict do nothing`,
      [JSON.stringify(needs)],
    );
  }

  /** Whether placements give way to the ones placed in their stead. */
  async setYields(tx: Tx, pairs: readonly (Pair & { yields: boolean })[]): Promise<void> {
    for (const yields of [true, false]) {
      const some = pairs.filter((pair) => pair.yields === yields);
      if (some.length > 0)
        await tx.query(`update placements set yields = $1 where ${inPairs(2)}`, [yields, ...pairArrays(some)]);
    }
  }

  async setWaits(tx: Tx, pairs: readonly (Pair & { waits: string | null })[]): Promise<void> {
    if (pairs.length === 0) return;
    await tx.query(
      `update placements p set waits = r.waits from jsonb_to_recordset($1) as r(deployment uuid, server uuid, waits text)
       where p.deployment_id = r.deployment and p.server_id = r.server`,
      [JSON.stringify(pairs)],
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

  /** Endpoints that have something on this server: all of it, or the models named. */
  async endpointsOn(tx: Tx, server: string, models?: readonly string[]): Promise<string[]> {
    const rows: { endpoint: string }[] = await tx.query(
      `select distinct endpoint from placements
       where server_id = $1 and state <> 'released' and ($2::text[] is null or triton_model = any($2)) order by 1`,
      [server, models ?? null],
    );
    return rows.map((row) => row.endpoint);
  }

  /** What these servers still hold for endpoints, and why. */
  async leftOn(
    tx: Tx,
    servers: readonly string[],
  ): Promise<{ server: string; endpoint: string; state: PlacementState; waits: string | null }[]> {
    return tx.query(
      `select distinct server_id as server, endpoint, state, waits from placements
       where server_id = any($1) and state <> 'released' order by 1, 2, 3`,
      [servers],
    );
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
