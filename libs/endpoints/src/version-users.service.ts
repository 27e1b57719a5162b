import { Injectable } from '@nestjs/common';
import type { EndpointSpec } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { VersionFacts } from './resolve/version.plan.ts';
import type { NamingSplit } from './split/split-member.plan.ts';
import { decideUsers, type HoldingDeployment } from './version-users.decide.ts';

/** The number that a Triton model's name carries; see `tritonModelName`. */
const numberIn = (tritonModel: string) => Number(/-v(\d+)-[0-9a-f]{12}$/.exec(tritonModel)?.[1] ?? 0);

/** What serving knows of versions that somebody wants to delete: who uses them, and which bytes are still needed. */
@Injectable()
export class VersionUsersService {
  /** In words such as `endpoint text/minilm (version 3)`; `numbers` null: the whole model. */
  async usersOf(
    tx: Tx,
    project: string,
    name: string,
    versions: readonly VersionFacts[],
    numbers: readonly number[] | null,
  ): Promise<string[]> {
    const endpoints: { name: string; model: EndpointSpec['model'] }[] = await tx.query(
      `select name, spec -> 'model' as model from endpoints where project = $1 and model = $2 and spec is not null
         and spec #>> '{model,source}' is null and spec #>> '{model,none}' is null`,
      [project, name],
    );
    const own: HoldingDeployment[] = await tx.query(
      `select distinct endpoint, version, false as called from deployments
       where project = $1 and model = $2 and state <> 'retired'`,
      [project, name],
    );
    const beside: { endpoint: string; model: string }[] = await tx.query(
      `select distinct d.endpoint, n ->> 'tritonModel' as model from deployments d,
         jsonb_path_query(d.body, '$.variants[*].needs[*] ? (@.of == $of)', jsonb_build_object('of', $1::text)) n
       where d.state <> 'retired'`,
      [`${project}/${name}`],
    );
    const called = beside.map(({ endpoint, model }) => ({ endpoint, version: numberIn(model), called: true }));
    const splits: NamingSplit[] = await tx.query(
      'select name, spec from splits where spec is not null and members && $1',
      [endpoints.map((endpoint) => endpoint.name)],
    );
    return decideUsers(endpoints, [...own, ...called], versions, numbers, splits);
  }

  /** Which of these hashes are files of something that is, or is to be, on a server. */
  async neededHashes(tx: Tx, hashes: readonly string[]): Promise<Set<string>> {
    const rows: { hash: string }[] = await tx.query(
      `select distinct h #>> '{}' as hash from deployments d,
         lateral (select jsonb_path_query(d.body, '$.**.sha256') as h) files
       where d.state <> 'retired' and h #>> '{}' = any($1)
       union select distinct h #>> '{}' from document_entries e, lateral (select jsonb_path_query(e.value, '$.**.sha256') as h) files
       where e.digest is not null and h #>> '{}' = any($1)`,
      [hashes],
    );
    return new Set(rows.map(({ hash }) => hash));
  }
}
