import type { GarbageRule } from '@perch/platform/database';

const modelsOf = (path: string) =>
  `select jsonb_path_query(d.body, '${path}') #>> '{}' from deployments d where d.state <> 'retired' and d.body <> 'null'`;

/** In this order: what an earlier kind takes away no longer holds a later one. */
export const endpointGarbage: readonly GarbageRule[] = [
  {
    kind: 'deployments',
    what: 'deployments that were retired',
    table: 'deployments d',
    where: `d.state = 'retired' and d.since < $1 and not exists (select 1 from placements p where p.deployment_id = d.id)`,
    name: `d.endpoint || ' version ' || d.version`,
  },
  {
    kind: 'triton models',
    what: 'descriptions of Triton models that no server is to hold',
    table: 'triton_models m',
    // who describes a model again touches its row, so a deployment that begins meanwhile is never robbed of it
    where: `m.described_at < $1 and not exists (select 1 from placements p where p.triton_model = m.name)
      and not exists (select 1 from placement_needs n where n.triton_model = m.name)
      and m.name not in (${modelsOf('$.variants[*].tritonModel')} union ${modelsOf('$.variants[*].needs[*].tritonModel')})`,
    name: 'm.name',
  },
  {
    kind: 'quarantine',
    what: 'what rollouts of endpoints refused that are gone',
    table: 'quarantine q',
    where: `q.since < $1 and not exists (select 1 from endpoints e where e.name = q.endpoint and e.spec is not null)`,
    name: `q.endpoint || ' version ' || q.version`,
  },
  {
    kind: 'counts',
    what: 'what routers counted for endpoints that are gone',
    table: 'router_stats s',
    where: `s.at < $1 and not exists (select 1 from endpoints e where e.name = s.endpoint and e.spec is not null)
      and not exists (select 1 from pipelines p where p.name = s.endpoint and p.spec is not null)`,
    name: `s.endpoint || ' version ' || s.version`,
  },
];
