import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Figures, Measurement } from './measure.ts';
import { smallScale } from './options.ts';
import { tableOf } from './report.ts';

/** Both sizes on the same servers: what grows between them grows with the number of endpoints. Counts only, no times. */
const [few, many] = [100, 1_000];
const figures = new Map<number, Figures>();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch-scale-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe.sequential('many endpoints', () => {
  it.each([few, many])(
    '%i endpoints × 2 versions on 20 servers: all ready, all routed, and no more than that',
    async (endpoints) => {
      const options = { ...smallScale, endpoints, publishes: 6, idleSeconds: 3, loadMs: [5, 50] as [number, number] };
      const place = { postgresUrl: inject('postgresUrl'), folder: join(folder, String(endpoints)) };
      const run = await new Measurement(options, place, undefined).run();
      figures.set(endpoints, run);
      console.log(`${endpoints} endpoints\n${tableOf(run)}`);
      expect(run).toMatchObject({ deployments: endpoints * 2, models: endpoints * 2, converged: true });
    },
  );

  it('one publish costs as much among many as among few: statements, bytes to agents, from them, and to routers', () => {
    const [small, big] = [figures.get(few)!.publish, figures.get(many)!.publish];
    expect(small.queries).toBeGreaterThan(20); // it was measured
    expect(big.queries).toBeLessThan(small.queries * 1.5 + 40);
    for (const way of ['bytesToAgents', 'bytesFromAgents', 'bytesToRouters'] as const) {
      expect(big[way], way).toBeGreaterThan(200);
      expect(big[way], way).toBeLessThan(small[way] * 1.5 + 1_000);
    }
    expect(big.bytesToRouters).toBeLessThan(20_000);
    expect(big.bytesToAgents).toBeLessThan(20_000);
  });

  it('the way from nothing takes as many statements an endpoint among many as among few', () => {
    const each = (endpoints: number) => figures.get(endpoints)!.reconcile.queriesPerEndpoint;
    expect(each(many)).toBeGreaterThan(20);
    expect(each(many)).toBeLessThan(each(few) * 1.3);
  });

  it('idling costs the same, however many endpoints there are', () => {
    const [small, big] = [figures.get(few)!.idle, figures.get(many)!.idle];
    expect(big.queriesPerSecond).toBeLessThan(small.queriesPerSecond * 1.5 + 40); // 40: looks at endpoints, two a second
    expect(big.bytesPerSecond).toBeLessThan(small.bytesPerSecond * 1.5 + 2_000);
  });
});
