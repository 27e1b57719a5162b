import { EndpointService } from '@perch/endpoints';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

/** Several control planes share one database without a leader: here, several workers on one queue, agents beside them. */
describe('many workers at once', () => {
  let world: FleetWorld;
  let agents: FakeAgent[];
  let routers: FakeRouter[];
  beforeAll(async () => {
    world = await FleetWorld.start();
    agents = [await world.agent('s1'), await world.agent('s2'), await world.agent('s3')];
    routers = [await world.router('r1'), await world.router('r2')];
  });
  afterAll(() => world.close());

  it('disturb neither one another nor what is served', async () => {
    const endpoints = Array.from({ length: 12 }, (_, n) => n);
    let over = false;
    const errors: unknown[] = [];
    const forever = async (work: () => Promise<unknown>) => {
      while (!over) await work().catch((error) => errors.push(error));
    };
    const workers = [
      ...[1, 2, 3, 4].map(() =>
        forever(async () => (await world.step()) || (await new Promise((next) => setTimeout(next, 5)))),
      ),
      ...agents.map((agent) => forever(() => agent.sync())),
      ...routers.map((router) => forever(() => router.sync())),
    ];
    for (let round = 0; round < 4; round += 1) {
      await Promise.all(
        endpoints.map(async (n) => {
          await world.versions.put(`p/m${n % 5}`);
          await world
            .get(EndpointService)
            .apply(operator, ruleSpec(`e${n}`, `p/m${n % 5}`, { fleet: { replicas: 1 + ((n + round) % 3) } }));
        }),
      );
    }
    await expect
      .poll(
        async () => {
          const rows = await Promise.all(endpoints.map((n) => world.endpoint(`e${n}`)));
          return rows.filter(({ status, spec }) => {
            const newest = world.versions.of(`${spec.model.project}/${spec.model.name}`).length;
            return status.phase === 'ready' && status.servingVersions.join() === String(newest);
          }).length;
        },
        { timeout: 45_000, interval: 250 },
      )
      .toBe(endpoints.length);
    over = true;
    await Promise.all(workers);
    expect(errors).toEqual([]);
    await world.converge(agents, routers);
    for (const n of endpoints) {
      const { spec } = await world.endpoint(`e${n}`);
      const [target] = routers[0]!.table!.endpoints[`e${n}`]!.targets;
      expect(target!.servers).toHaveLength(spec.fleet.replicas);
    }
    const placed = await world.database.query(`select distinct triton_model from placements where state <> 'released'`);
    expect(new Set(agents.flatMap((agent) => [...agent.held.keys()]))).toEqual(
      new Set(placed.map((row) => row['triton_model'])),
    );
  });
});
