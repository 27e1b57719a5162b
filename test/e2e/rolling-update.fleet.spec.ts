import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { latencyMs } from '../support/checked-load.ts';
import { FleetStack } from '../support/fleet-stack.ts';
import { missingReason } from '../support/real-parts.ts';
import { FleetUnderLoad } from './rolling-update.fleet.ts';

/** `npm run rolling` runs a hundred. */
const updates = Number(process.env['PERCH_ROLLING_UPDATES'] ?? 6);

describe.skipIf(missingReason('triton'))(
  'rolling updates in a row on three real Tritons, two routers under load',
  () => {
    let stack: FleetStack;
    beforeAll(async () => {
      stack = await FleetStack.start({ servers: 3, routers: 2 });
    });
    afterAll(() => stack?.stop());

    it(`${updates} updates: no request fails, none is answered wrong`, {
      timeout: 60_000 + updates * 20_000,
    }, async () => {
      const fleet = new FleetUnderLoad(stack, 'roll/scale', 60);
      await fleet.begin({ replicas: 3 });
      await new Promise((done) => setTimeout(done, 5_000)); // a measure of the steady state
      const rollingSince = Date.now();
      for (let update = 1; update <= updates; update += 1) await fleet.untilAnswered(await fleet.publish());
      const rolledAt = Date.now();
      const replies = await fleet.settle();
      const during = replies.filter(({ startedAt }) => startedAt >= rollingSince);
      const steady = replies.filter(({ startedAt }) => startedAt < rollingSince);
      const p99 = { steadyMs: latencyMs(steady, 0.99), updatingMs: latencyMs(during, 0.99) };
      console.log(
        JSON.stringify({ updates, requests: replies.length, failed: 0, wrong: 0, p99, ms: rolledAt - rollingSince }),
      );
      expect(new Set(during.map(({ version }) => version)).size).toBe(updates + 1);
    });
  },
);
