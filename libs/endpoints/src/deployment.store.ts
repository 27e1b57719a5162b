import { Injectable } from '@nestjs/common';
import { type DeploymentState, digestOf, type Route } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { pipelineOfName } from './pipeline/pipeline.store.ts';
import type { DeploymentBody } from './resolve/engine.plan.ts';
import { splitOfName } from './split/split.store.ts';

export interface DeploymentRow {
  id: string;
  endpoint: string;
  version: number;
  digest: string;
  source_digest: string;
  triton_model: string;
  /** Null: its files could not be laid out. */
  body: DeploymentBody | null;
  state: DeploymentState;
  reason: string | null;
  since: Date;
}

export type NewDeployment = Omit<DeploymentRow, 'since'> & { generation: number; project: string; model: string };

/** The only SQL for deployments and for the routes that endpoints want. */
@Injectable()
export class DeploymentStore {
  /** Those not retired. `known`: rows read before; bodies never change, so theirs are not read again. */
  async ofEndpoint(tx: Tx, endpoint: string, known: readonly DeploymentRow[] = []): Promise<DeploymentRow[]> {
    if (known.length === 0) return this.ofEndpoints(tx, [endpoint]);
    const bodies = new Map(known.map(({ id, body }) => [id, body]));
    const rows: DeploymentRow[] = await tx.query(
      `select id, endpoint, version, digest, source_digest, triton_model, state, reason, since,
         case when id = any($2) then null else nullif(body, 'null'::jsonb) end as body
       from deployments where endpoint = $1 and state <> 'retired' order by version desc, created_at desc`,
      [endpoint, [...bodies.keys()]],
    );
    return rows.map((row) => ({ ...row, body: bodies.get(row.id) ?? row.body }));
  }

  async ofEndpoints(tx: Tx, endpoints: readonly string[]): Promise<DeploymentRow[]> {
    return tx.query(
      `select id, endpoint, version, digest, source_digest, triton_model, nullif(body, 'null'::jsonb) as body, state, reason, since
       from deployments where endpoint = any($1) and state <> 'retired' order by version desc, created_at desc`,
      [endpoints],
    );
  }

  /** The last deployments of these digests, retired ones too, as far as they could be deployed; of one model. */
  async lastOf(
    tx: Tx,
    endpoint: string,
    { project, name }: { project: string; name: string },
    digests: readonly string[],
  ): Promise<DeploymentRow[]> {
    return tx.query(
      `select distinct on (digest) id, endpoint, version, digest, source_digest, triton_model, body, state, reason, since
       from deployments where endpoint = $1 and digest = any($4) and project = $2 and model = $3 and body <> 'null'
       order by digest, created_at desc`,
      [endpoint, project, name, digests],
    );
  }

  async insert(tx: Tx, row: NewDeployment): Promise<void> {
    await tx.query(
      `insert into deployments (id, endpoint, generation, project, model, version, digest, source_digest, triton_model, body, state, reason)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
      [
        row.id,
        row.endpoint,
        row.generation,
        row.project,
        row.model,
        row.version,
        row.digest,
        row.source_digest,
        row.triton_model,
        JSON.stringify(row.body),
        row.state,
        row.reason,
      ],
    );
  }

  async setState(tx: Tx, id: string, state: DeploymentState, reason: string | null): Promise<void> {
    await tx.query(
      `update deployments set reason = $3, since = case when state = $2 then since else now() end, state = $2 where id = $1`,
      [id, state, reason],
    );
  }

  async setSource(tx: Tx, id: string, sourceDigest: string): Promise<void> {
    await tx.query('update deployments set source_digest = $2 where id = $1', [id, sourceDigest]);
  }

  /** Draining deployments of the endpoint that no server is to hold any more. */
  async drained(tx: Tx, endpoint: string): Promise<{ id: string; version: number }[]> {
    return tx.query(
      `select id, version from deployments d where endpoint = $1 and state = 'draining' and not exists (
         select 1 from placements p where p.deployment_id = d.id and p.state <> 'released') for update`,
      [endpoint],
    );
  }

  /** Draining deployments of the endpoint that never had a server, for want of a model. */
  async drainingModelless(tx: Tx, endpoint: string): Promise<string[]> {
    const rows: { id: string }[] = await tx.query(
      `select id from deployments where endpoint = $1 and state = 'draining' and body -> 'variants' = '[]' order by id`,
      [endpoint],
    );
    return rows.map(({ id }) => id);
  }

  /** The states of these deployments; ids that were never ours are absent. */
  async states(tx: Tx, ids: readonly string[]): Promise<Map<string, DeploymentState>> {
    const rows: { id: string; state: DeploymentState }[] = await tx.query(
      'select id, state from deployments where id = any($1)',
      [ids],
    );
    return new Map(rows.map(({ id, state }) => [id, state]));
  }

  /** False: it is what it was. */
  async saveRoute(tx: Tx, endpoint: string, route: Route | null): Promise<boolean> {
    const [, count] =
      route === null
        ? await tx.query('delete from endpoint_routes where endpoint = $1', [endpoint])
        : await tx
            .query(
              `insert into endpoint_routes (endpoint, route, digest) values ($1, $2, $3)
             on conflict (endpoint) do update set route = excluded.route, digest = excluded.digest
               where endpoint_routes.digest <> excluded.digest returning endpoint`,
              [endpoint, JSON.stringify(route), digestOf(route)],
            )
            .then((rows: unknown[]) => [rows, rows.length]);
    return count > 0;
  }

  async routes(tx: Tx, endpoints: readonly string[]): Promise<Map<string, Route>> {
    const rows: { endpoint: string; route: Route }[] = await tx.query(
      'select endpoint, route from endpoint_routes where endpoint = any($1)',
      [endpoints],
    );
    return new Map(rows.map(({ endpoint, route }) => [endpoint, route]));
  }

  /** Routes of endpoints that differ from what is published; `route` null: the endpoint is gone. */
  async changedRoutes(
    tx: Tx,
    document: string,
  ): Promise<{ endpoint: string; route: Route | null; digest: string | null }[]> {
    return tx.query(
      `select coalesce(r.endpoint, e.key) as endpoint, r.route, r.digest from endpoint_routes r
       full join (select key, digest from document_entries where document_id = $1 and section = 'endpoints' and digest is not null) e
         on e.key = r.endpoint
       where r.digest is distinct from e.digest and not exists (${splitOfName('coalesce(r.endpoint, e.key)')})
         and not exists (${pipelineOfName('coalesce(r.endpoint, e.key)')})`,
      [document],
    );
  }
}
