import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';
import { inlineLimitBytes } from '../external/external.plan.ts';
import { type Memory, memoryKey } from './memory.plan.ts';
import type { ModelFacts, PlannedServer, TakenName } from './placement-world.ts';

const poolKey = `hashtextextended('pool ' || $1, 7137303)`;

/** What takes part in `held`: models that a server is to hold, under whatever name, once each. */
const heldModels = `
  select server_id, triton_model from placements where server_id = any($1) and state <> 'released'
  union
  select n.server_id, n.triton_model from placement_needs n join placements p using (deployment_id, server_id)
  where n.server_id = any($1) and p.state <> 'released'`;

const plannedServers = `
  select s.id, s.name, s.pool, s.labels, s.presence, s.mode, s.device, s.facts, s.usage, s.observed is not null as reported, d.forced, l.models, l.moving, l.ram_bytes, l.gpu_bytes
  from servers s left join server_drains d on d.server_id = s.id left join server_loads l on l.server_id = s.id`;

/** What servers have room for and what models take. The only SQL for loads, measured memory and variants that failed. */
@Injectable()
export class CapacityStore {
  /**
   * Placements of a pool are decided one after the other, so that no two take the same room or the same name. `shared`:
   * there is neither to be taken; then only drains, which shut servers, have to wait.
   */
  async lockPool(tx: Tx, pool: string, shared = false): Promise<void> {
    await tx.query(`select pg_advisory_xact_lock${shared ? '_shared' : ''}(${poolKey})`, [pool]);
  }

  /** Servers of a pool that placements may use or keep: all but lost ones. */
  async ofPool(tx: Tx, pool: string): Promise<PlannedServer[]> {
    return (await tx.query(`${plannedServers} where s.pool = $1 and s.presence <> 'lost' order by s.id`, [pool])).map(
      toPlanned,
    );
  }

  /** Every server that is not lost, or the one named, with its pool. */
  async all(tx: Tx, id: string | null = null): Promise<(PlannedServer & { pool: string })[]> {
    const rows = await tx.query(
      `${plannedServers} where s.id = $1 or ($1::uuid is null and s.presence <> 'lost') order by s.id`,
      [id],
    );
    return rows.map((row: { pool: string }) => ({ ...toPlanned(row), pool: row.pool }));
  }

  /** How many endpoints have something placed, by pool. */
  async endpointsByPool(tx: Tx): Promise<Map<string, number>> {
    const rows: { pool: string; endpoints: number }[] = await tx.query(
      `select s.pool, count(distinct p.endpoint)::integer as endpoints from placements p join servers s on s.id = p.server_id
       where p.state <> 'released' group by s.pool`,
    );
    return new Map(rows.map(({ pool, endpoints }) => [pool, endpoints]));
  }

  /** What is known of these models (variants and all they need) on the servers of a pool. */
  async modelFacts(tx: Tx, pool: string, { models, literal }: PlaceableModels): Promise<ModelFacts> {
    const names = models.map(({ name }) => name);
    const digests = models.map(({ digest }) => digest);
    const measured: MemoryRow[] = await tx.query(
      'select digest, device, ram_bytes, gpu_bytes from model_memory where digest = any($1)',
      [digests],
    );
    const held: ModelRow[] = await tx.query(
      `select server_id, triton_model from placements where triton_model = any($1) and state <> 'released'
       union select n.server_id, n.triton_model from placement_needs n join placements p using (deployment_id, server_id)
       where n.triton_model = any($1) and p.state <> 'released'`,
      [names],
    );
    const failures = await this.failuresOf(tx, names);
    return {
      measured: new Map(measured.map((row) => [memoryKey(row.digest, row.device), toMemory(row)])),
      held: new Set(held.map((row) => `${row.server_id} ${row.triton_model}`)),
      failures: new Map(failures.map(({ server, tritonModel, reason }) => [`${server} ${tritonModel}`, reason])),
      taken: literal ? await this.takenNames(tx, pool) : [],
    };
  }

  private async takenNames(tx: Tx, pool: string): Promise<TakenName[]> {
    return tx.query(
      `select n.server_id as server, n.name, n.triton_model as "tritonModel", p.endpoint, n.used_model as "usedModel"
       from placement_needs n join placements p using (deployment_id, server_id) join servers s on s.id = n.server_id
       where n.name <> n.triton_model and p.state <> 'released' and s.pool = $1`,
      [pool],
    );
  }

  /** Counts anew what these servers hold. The rows are locked first: a count never overwrites a later one. */
  async recount(tx: Tx, servers: readonly string[]): Promise<void> {
    if (servers.length === 0) return;
    await tx.query('select 1 from server_loads where server_id = any($1) order by server_id for update', [servers]);
    await tx.query(
      `insert into server_loads (server_id, models, moving, ram_bytes, gpu_bytes)
       select s.id, coalesce(c.models, 0), coalesce(c.moving, 0), coalesce(m.ram, 0), coalesce(m.gpu, 0)
       from servers s
       left join (
         select server_id, count(distinct triton_model) filter (where state = 'active' and not yields) as models,
           count(*) filter (where state = 'active' and yields) as moving
         from placements where server_id = any($1) group by server_id) c on c.server_id = s.id
       left join (
         select h.server_id,
           sum(coalesce(k.ram_bytes, case when v.device <> 'cpu' and t.on_gpu then 0 else t.guess_bytes end))::bigint as ram,
           sum(coalesce(k.gpu_bytes, case when v.device <> 'cpu' and t.on_gpu then t.guess_bytes else 0 end))::bigint as gpu
         from (${heldModels}) h join servers v on v.id = h.server_id join triton_models t on t.name = h.triton_model
         left join model_memory k on k.digest = t.digest and k.device = v.device
         group by h.server_id) m on m.server_id = s.id
       where s.id = any($1)
       on conflict (server_id) do update set models = excluded.models, moving = excluded.moving,
         ram_bytes = excluded.ram_bytes, gpu_bytes = excluded.gpu_bytes`,
      [servers],
    );
  }

  /** What was measured last is what counts, for every server with that device. False: all of it was known. */
  async learn(tx: Tx, device: string, measured: readonly ({ name: string } & Memory)[]): Promise<boolean> {
    if (measured.length === 0) return false;
    const learned: unknown[] = await tx.query(
      `insert into model_memory (digest, device, ram_bytes, gpu_bytes)
       select distinct on (t.digest) t.digest, $1, r."ramBytes", r."gpuBytes"
       from jsonb_to_recordset($2) as r(name text, "ramBytes" bigint, "gpuBytes" bigint)
         cross join lateral (select digest from triton_models where name = r.name offset 0) t -- by the index: a hash join reads them all
       on conflict (digest, device) do update set ram_bytes = excluded.ram_bytes, gpu_bytes = excluded.gpu_bytes,
         measured_at = now()
       where (model_memory.ram_bytes, model_memory.gpu_bytes) <> (excluded.ram_bytes, excluded.gpu_bytes) returning digest`,
      [device, JSON.stringify(measured)],
    );
    return learned.length > 0;
  }

  async noteFailures(tx: Tx, failures: readonly { server: string; tritonModel: string; reason: string }[]) {
    if (failures.length === 0) return;
    await tx.query(
      `insert into variant_failures (server_id, triton_model, reason)
       select distinct on (server, "tritonModel") server, "tritonModel", reason
       from jsonb_to_recordset($1) as r(server uuid, "tritonModel" text, reason text)
       on conflict (server_id, triton_model) do update set reason = excluded.reason, failed_at = now()`,
      [JSON.stringify(failures)],
    );
  }

  /** The server is another one now (other software, or a person looked after it): what failed there may be tried again. */
  async forgetFailures(tx: Tx, server: string): Promise<void> {
    await tx.query('delete from variant_failures where server_id = $1', [server]);
  }

  async failuresOn(tx: Tx, server: string): Promise<{ tritonModel: string; reason: string }[]> {
    return tx.query(
      'select triton_model as "tritonModel", reason from variant_failures where server_id = $1 order by 1',
      [server],
    );
  }

  /** Why variants failed for good before others took their place, by `<server> <triton model>`. */
  async failuresOf(
    tx: Tx,
    models: readonly string[],
  ): Promise<{ server: string; tritonModel: string; reason: string }[]> {
    return tx.query(
      `select server_id as server, triton_model as "tritonModel", reason from variant_failures where triton_model = any($1)`,
      [models],
    );
  }
}

/** Every Triton model that may be placed, with what it needs. `literal`: some of it under a name that code calls. */
export interface PlaceableModels {
  models: readonly { name: string; digest: string }[];
  literal: boolean;
}

interface MemoryRow {
  digest: string;
  device: string;
  ram_bytes: string;
  gpu_bytes: string;
}
interface ModelRow {
  server_id: string;
  triton_model: string;
}

const toMemory = ({ ram_bytes, gpu_bytes }: Pick<MemoryRow, 'ram_bytes' | 'gpu_bytes'>): Memory => ({
  ramBytes: Number(ram_bytes),
  gpuBytes: Number(gpu_bytes),
});

// biome-ignore lint/suspicious/noExplicitAny: a row of the query above
const toPlanned = (row: any): PlannedServer => ({
  id: row.id,
  name: row.name,
  presence: row.presence,
  labels: row.labels,
  reported: row.reported,
  drain: row.forced === null ? null : row.forced ? 'forced' : 'orderly',
  external: row.mode === 'adopt',
  inlineBytes: row.mode === 'explicit' ? inlineLimitBytes : null,
  device: row.device,
  facts: row.facts,
  usage: row.usage,
  models: row.models ?? 0,
  moving: row.moving ?? 0,
  placed: { ramBytes: Number(row.ram_bytes ?? 0), gpuBytes: Number(row.gpu_bytes ?? 0) },
});
