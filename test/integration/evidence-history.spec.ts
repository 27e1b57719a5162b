import { randomUUID } from 'node:crypto';
import { latencyBoundsMs, rolloutPolicy } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BaselineService } from '../../libs/promotion/src/evidence/baseline.service.ts';
import { HistoryReconcile } from '../../libs/promotion/src/evidence/history.reconcile.ts';
import { TrafficHistoryStore } from '../../libs/promotion/src/evidence/traffic-history.store.ts';
import { EvidenceStand } from '../support/evidence.ts';

let stand: EvidenceStand;
const router = randomUUID();
beforeAll(async () => {
  stand = await EvidenceStand.start();
  await stand.database.query(`insert into routers (id, name, token_hash) values ($1, 'r1', 'x')`, [router]);
});
afterAll(() => stand.close());

const policy = rolloutPolicy.parse({});
const look = () => stand.get(HistoryReconcile).look();
const measure = (endpoint: string, version = 1) =>
  stand.get(Transactions).run((tx) => stand.get(BaselineService).measure(tx, { endpoint, version, policy }));

/** All replies within the bucket that ends at 50 ms. */
const latency = (requests: number) => latencyBoundsMs.map((bound) => (bound === 50 ? requests : 0)).concat(0);
const say = (endpoint: string, requests: number, errors: number, { version = 1, boot = 'b1' } = {}) =>
  stand.database.query(
    `insert into router_stats (router_id, endpoint, version, boot_id, requests, errors, retries, latency)
     values ($1, $2, $3, $4, $5, $6, 0, $7) on conflict (router_id, endpoint, version) do update set boot_id = excluded.boot_id,
       requests = excluded.requests, errors = excluded.errors, latency = excluded.latency`,
    [router, endpoint, version, boot, requests, errors, latency(requests)],
  );
const progressive = (endpoint: string) =>
  stand.database.query(`insert into endpoint_traffic (endpoint, wish, force) values ($1, '{}', '{}')`, [endpoint]);
const minutesPass = (minutes: number) =>
  stand.database.query(`update traffic_looks set at = at - $1 * interval '1 minute'`, [minutes]);

describe('the day before a rollout', () => {
  it('is what was counted minute by minute, over boots of routers, and what came in since', async () => {
    await progressive('text/day');
    await say('text/day', 100_000, 9_000); // long ago: when is not known
    await look();
    await minutesPass(1);
    await say('text/day', 100_600, 9_001);
    await look();
    await minutesPass(1);
    await say('text/day', 300, 0, { boot: 'b2' }); // began anew
    await say('text/day', 100, 100, { version: 2 }); // another version counts for the busiest minute alone
    await look();
    await look(); // nothing new: nothing more
    await say('text/day', 400, 0, { boot: 'b2' });
    const recent = await stand.get(TrafficHistoryStore).recent(stand.get(Transactions).manager, 'text/day');
    expect(recent).toMatchObject({ requests: 100 });
    const baseline = await measure('text/day');
    expect(baseline).toMatchObject({ requests: 1_000, errorRate: 0.001, r0: { error: 1, slow: 1.25, contract: 1.25 } });
    expect(Math.abs(baseline.requestsPerMinute - 600)).toBeLessThan(30);
    expect(baseline.slowMs).toBe(75); // 1.5 × a p99 of 49.8
  });

  it('takes all that was counted for one minute when nobody looked before', async () => {
    await say('text/new', 5_000, 100);
    expect(await measure('text/new')).toMatchObject({ requests: 5_000, requestsPerMinute: 5_000, r0: { error: 1.25 } });
  });

  it('of an endpoint without traffic says that nobody is judged by slow', async () => {
    const baseline = await measure('text/none');
    expect(baseline).toMatchObject({
      requests: 0,
      errorRate: null,
      slowMs: null,
      requestsPerMinute: 0,
      r0: { error: 1.25 },
    });
    expect(baseline.sentences.join(' ')).toMatch(/Nobody is judged by slow/);
  });

  it('forgets what is older than a day, and endpoints that are not progressive any more', async () => {
    await stand.database.query(`update traffic_hours set hour = hour - interval '27 hours'`);
    await stand.database.query(`update traffic_peaks set hour = hour - interval '27 hours'`);
    await stand.database.query('delete from endpoint_traffic');
    await look();
    for (const table of ['traffic_hours', 'traffic_peaks', 'traffic_marks', 'traffic_looks'])
      expect([table, (await stand.database.query(`select 1 from ${table}`)).length]).toEqual([table, 0]);
  });

  it('looks at a thousand endpoints in slices', async () => {
    await stand.database.query(
      `insert into endpoint_traffic (endpoint, wish, force) select 'many/' || n, '{}', '{}' from generate_series(1, 1000) n`,
    );
    await stand.database.query(
      `insert into router_stats (router_id, endpoint, version, boot_id, requests, errors, retries, latency)
       select $1, 'many/' || n, 1, 'b', 60, 0, 0, $2 from generate_series(1, 1000) n`,
      [router, latency(60)],
    );
    await look();
    await minutesPass(1);
    await stand.database.query(`update router_stats set requests = 120, latency = $1 where endpoint like 'many/%'`, [
      latency(120),
    ]);
    const begun = performance.now();
    await look();
    const tookMs = performance.now() - begun;
    const [sum] = await stand.database.query(
      'select count(*)::integer as n, sum(requests)::integer as r from traffic_hours',
    );
    expect(sum).toEqual({ n: 1_000, r: 60_000 });
    expect(tookMs).toBeLessThan(20_000);
    console.info(`a look at 1,000 endpoints: ${Math.round(tookMs)} ms`);
  });
});
