import { Injectable } from '@nestjs/common';
import type { ProcessingModuleRecord } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { decideModuleUsers, type ModuleUses, recentDays } from './module-users.decide.ts';
import { PipelineStore } from './pipeline/pipeline.store.ts';

/** What serving knows of a processing module that somebody wants to delete. */
@Injectable()
export class ModuleUsersService {
  constructor(private readonly pipelines: PipelineStore) {}

  /** In words such as `endpoint text/minilm`; none: nobody uses it. */
  async usersOf(tx: Tx, { name, number }: Pick<ProcessingModuleRecord, 'name' | 'number'>): Promise<string[]> {
    const reference = `${name}@${number}`;
    const endpoints: { name: string }[] = await tx.query(
      `select name from endpoints where spec #>> '{processing,module}' = $1`,
      [reference],
    );
    const deployments: ModuleUses['deployments'] = await tx.query(
      `select distinct endpoint, version from deployments where state <> 'retired'
         and body #>> '{processing,module,name}' = $1 and (body #>> '{processing,module,number}')::integer = $2`,
      [name, number],
    );
    const generations: ModuleUses['generations'] = await tx.query(
      `select g.endpoint, max(g.generation)::integer as generation from endpoint_generations g
       join endpoints e on e.name = g.endpoint and e.spec is not null
       where g.spec #>> '{processing,module}' = $1
         and coalesce((select min(n.created_at) from endpoint_generations n
           where n.endpoint = g.endpoint and n.generation > g.generation), now()) > now() - $2 * interval '1 day'
       group by g.endpoint`,
      [reference, recentDays],
    );
    const versions: { version: string }[] = await tx.query(
      `select m.project || '/' || m.name || '@' || v.number as version from versions v join models m on m.id = v.model_id
       where v.processing ->> 'module' = $1 and v.deleted_at is null and v.state <> 'archived'`,
      [reference],
    );
    const pipelines = await this.pipelines.namingModule(tx, reference, recentDays);
    return decideModuleUsers({
      pipelines,
      endpoints: endpoints.map((endpoint) => endpoint.name),
      deployments,
      generations,
      versions: versions.map(({ version }) => version),
    });
  }
}
