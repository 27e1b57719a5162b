import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RoutingTable } from '@perch/contracts';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { smallScale } from './options.ts';
import { endpointName, modelName, project, seedRegistry } from './registry.seed.ts';
import { Simulation, until } from './simulation.ts';

let folder: string;
let simulation: Simulation;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-upgrade-test-'));
  const options = { ...smallScale, endpoints: 5, servers: 3, replicas: 2 };
  simulation = new Simulation(options, { postgresUrl: inject('postgresUrl'), folder });
});
afterAll(async () => {
  await simulation.stop();
  await rm(folder, { recursive: true, force: true });
});

const contentOf = ({ endpoints, servers, keys }: RoutingTable) => ({ endpoints, servers, keys });
const schemas = () => [
  ...simulation.agents.map(({ document }) => document?.schema),
  ...simulation.routers.map(({ table }) => table?.schema),
];

it('a control plane goes from one schema to the next and back while agents and routers stay: same tables, nothing unloaded', async () => {
  const { agents, routers, planes } = simulation;
  await simulation.start({ PERCH_DOCUMENT_SCHEMA: '1' });
  await seedRegistry(simulation.admin, simulation.db, { models: 5, published: 2, drafts: [] });
  for (let index = 0; index < 5; index += 1) {
    const model = { project, name: modelName(index), maxVersions: 2 };
    await simulation.admin.must('POST', '/endpoints', { name: endpointName(index), model, fleet: { replicas: 2 } });
  }
  const served = (table: RoutingTable) =>
    Object.values(table.endpoints).filter(({ targets }) => targets.every(({ servers }) => servers.length === 2)).length;
  await until('all routed', 60, () => [
    routers.every(({ table }) => table && served(table) === 5 && Object.values(table.endpoints).every(({ targets }) => targets.length === 2)), // biome-ignore format: one condition
    `${routers.map(({ table }) => table && served(table))} of 5`,
  ]);
  expect(new Set(schemas())).toEqual(new Set([1]));
  const before = contentOf(routers[0]!.table!);
  const loads = agents.reduce((sum, { triton }) => sum + triton.loads, 0);
  const least: number[] = [];
  for (const router of routers) router.onTable = (table) => least.push(served(table));

  for (const schema of [2, 1, 2]) {
    await planes[0]!.stop();
    await planes[0]!.start({ PERCH_DOCUMENT_SCHEMA: String(schema) });
    await until(`schema ${schema} everywhere`, 60, () => [
      schemas().every((one) => one === schema),
      `schemas ${schemas().join(', ')}`,
    ]);
    for (const { table } of routers) expect(contentOf(table!)).toEqual(before);
  }
  expect(least.length).toBeGreaterThan(0);
  expect(new Set(least)).toEqual(new Set([5])); // in every table on the way every endpoint had all its servers
  expect(agents.reduce((sum, { triton }) => sum + triton.loads, 0)).toBe(loads);
  expect(agents.reduce((sum, { triton }) => sum + triton.unloads, 0)).toBe(0);
});
