import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FleetStack } from '../support/fleet-stack.ts';
import { missingReason } from '../support/real-parts.ts';
import { FleetUnderLoad } from './rolling-update.fleet.ts';

/** Requests that a model has run, by its server's own count. */
async function ran(http: string): Promise<number> {
  const answer = await fetch(`http://${http}/v2/models/stats`, { signal: AbortSignal.timeout(3_000) });
  const { model_stats } = (await answer.json()) as { model_stats: { inference_count: number }[] };
  return model_stats.reduce((sum, { inference_count }) => sum + inference_count, 0);
}

describe.skipIf(missingReason('triton'))('one of three real Tritons killed under load', () => {
  let stack: FleetStack;
  beforeAll(async () => {
    stack = await FleetStack.start({ servers: 3, routers: 2 });
  });
  afterAll(() => stack?.stop());

  it('no request fails, and it is given requests again soon after it is ready', async () => {
    const fleet = new FleetUnderLoad(stack, 'kill/scale', 60);
    await fleet.begin({ replicas: 3 });
    const { triton, http } = stack.servers[1]!;
    await expect.poll(() => ran(http), { timeout: 60_000 }).toBeGreaterThan(20);
    await triton.kill();
    const before = fleet.load.replies.length;
    await expect.poll(() => fleet.load.replies.length, { timeout: 60_000 }).toBeGreaterThan(before + 150);
    await triton.start();
    const readyAt = Date.now();
    // Loading and the warm-up leave a count of one or two; traffic many.
    await expect.poll(() => ran(http).catch(() => 0), { timeout: 60_000 }).toBeGreaterThan(20);
    const backMs = Date.now() - readyAt;
    const replies = await fleet.settle();
    console.log(JSON.stringify({ requests: replies.length, failed: 0, wrong: 0, backMs }));
  });
});

describe.skipIf(missingReason('triton'))('the only Triton killed under load, and back after three seconds', () => {
  let stack: FleetStack;
  beforeAll(async () => {
    stack = await FleetStack.start({ servers: 1, routers: 2 });
  });
  afterAll(() => stack?.stop());

  it('requests wait for it within their deadline: none fails', async () => {
    const fleet = new FleetUnderLoad(stack, 'alone/scale', 40);
    await fleet.begin({ replicas: 1 });
    const { triton } = stack.servers[0]!;
    await expect.poll(() => fleet.load.replies.length, { timeout: 60_000 }).toBeGreaterThan(40);
    const killedAt = Date.now();
    await triton.kill();
    await new Promise((done) => setTimeout(done, 3_000)); // as long as it is away
    await triton.start();
    const readyAt = Date.now();
    await expect.poll(() => fleet.load.inFlight, { timeout: 60_000 }).toBeLessThan(5);
    const restedMs = Date.now() - readyAt;
    const replies = await fleet.settle();
    const waited = replies.filter(({ startedAt, endedAt }) => startedAt < readyAt && endedAt >= readyAt);
    expect(waited.length).toBeGreaterThan(40);
    console.log(
      JSON.stringify({ requests: replies.length, waited: waited.length, awayMs: readyAt - killedAt, restedMs }),
    );
  });
});
