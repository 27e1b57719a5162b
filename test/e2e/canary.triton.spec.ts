import type { Rollout, RolloutEvent, RolloutPolicyInput } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Admin } from '../support/admin.ts';
import { ConstantLoad, type Reply } from '../support/load.ts';
import { faultyPython, pythonModel } from '../support/python-models.ts';
import { missingReason } from '../support/real-parts.ts';
import type { Stack } from '../support/stack.ts';
import { startTritonStack, type TritonStack } from '../support/triton-stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const wide = { margin: { absolute: 0.15, relative: 0.2 } };
/** What a test can wait for: wide margins, so that a hundred requests prove something. */
const policy: RolloutPolicyInput = {
  weightsPercent: [25, 50],
  dwellMs: 2_000,
  bakeMs: 5_000,
  slowGraceMs: 500,
  slowMs: 60,
  error: wide,
  contract: wide,
  slow: { margin: { absolute: 0.3, relative: 0.4 } },
};
const perSecond = 40;

/** `expect.poll` knows one test at a time. */
async function until(isSo: () => boolean | Promise<boolean>, timeoutMs: number, what: () => string): Promise<void> {
  for (const deadline = Date.now() + timeoutMs; !(await isSo()); ) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what()}`);
    await new Promise((next) => setTimeout(next, 200));
  }
}

/** Versions are published, and nothing else is done. */
describe.skipIf(missingReason('triton'))('canaries on the real Triton, through publish alone', () => {
  let whole: TritonStack;
  let stack: Stack;
  let admin: Admin;
  beforeAll(async () => {
    whole = await startTritonStack();
    ({ stack, admin } = whole);
    await Promise.all(
      ['good', 'errs', 'slow', 'nan', 'idle'].map((name) => add(name, name === 'idle' ? { maxWaitMs: 1_000 } : {})),
    );
  });
  afterAll(() => whole?.stop());

  const publish = (name: string, fault: Parameters<typeof faultyPython>[0] = {}) =>
    admin.upload(`canary/${name}`, pythonModel(name, faultyPython(fault)));
  const add = async (name: string, more: RolloutPolicyInput = {}) => {
    await publish(name);
    await admin.addEndpoint({
      name,
      model: { project: 'canary', name },
      traffic: { mode: 'progressive', policy: { ...policy, ...more } },
    });
    await admin.untilServed(name, 1, input, 60_000);
  };
  const rolloutOf = async (endpoint: string): Promise<Rollout | undefined> =>
    (await admin.must<{ items: Rollout[] }>('GET', `/rollouts?endpoint=${encodeURIComponent(endpoint)}`)).items[0];
  const eventsOf = async ({ id }: Rollout): Promise<RolloutEvent[]> => {
    let items: RolloutEvent[] | undefined;
    const read = async () => {
      const path = `/rollouts/${id}/events?limit=100`;
      items = await admin.must<{ items: RolloutEvent[] }>('GET', path).then((page) => page.items, () => undefined); // biome-ignore format: one row
      return items !== undefined; // the control plane may be away
    };
    await until(read, 30_000, () => `events of rollout ${id}`);
    return items!;
  };
  const loadOf = (endpoint: string) =>
    new ConstantLoad(
      `${stack.router.address}/serve/${endpoint}`,
      { authorization: `Bearer ${stack.adminKey}` },
      JSON.stringify(input),
      perSecond,
    ).start();
  const untilState = async (endpoint: string, states: readonly string[], timeoutMs = 60_000): Promise<Rollout> => {
    let seen: Rollout | undefined;
    const isThere = async () => {
      seen = await rolloutOf(endpoint).catch(() => seen); // the control plane may be away
      return seen !== undefined && states.includes(seen.state);
    };
    await until(isThere, timeoutMs, () => `${endpoint} becomes ${states}: ${JSON.stringify(seen)}`);
    return seen!;
  };

  /** Publishes version 2 under load and waits for the end of its rollout; what clients saw, and when. */
  async function tryOut(name: string, fault: Parameters<typeof faultyPython>[0]) {
    const load = loadOf(name);
    try {
      await publish(name, fault);
      const rollout = await untilState(name, ['promoted', 'rolled_back', 'aborted']);
      const replies = await load.stop();
      return { rollout, replies, events: await eventsOf(rollout) };
    } finally {
      await load.stop();
    }
  }

  const bad = (replies: readonly Reply[]) => replies.filter(({ status }) => status !== 200).slice(0, 3);
  const fallbacks = (replies: readonly Reply[]) => replies.filter(({ arm }) => arm.includes('fallback'));
  /** Of one clock: replies have that of this process since its start. */
  const at = (iso: string) => Date.parse(iso) - performance.timeOrigin;

  it.concurrent('a good version is promoted by the ramp, though the control plane is killed twice on the way', async () => {
    const load = loadOf('good');
    await publish('good', { note: 'second' });
    await untilState('good', ['shifting']);
    await stack.controlPlane.crash();
    await untilState('good', ['baking']);
    await stack.controlPlane.crash();
    const rollout = await untilState('good', ['promoted', 'rolled_back', 'aborted']);
    const replies = await load.stop();
    expect([rollout.state, rollout.reason]).toEqual(['promoted', expect.any(String)]);
    expect(bad(replies)).toEqual([]);
    expect(replies.some(({ arm, version }) => arm === 'candidate' && version === 2)).toBe(true);
    await admin.untilServed('good', 2, input);
  });

  it.concurrent('one that errs on 30 % is rolled back within 3 s of its tenth failure, and no client saw one', async () => {
    const { rollout, replies, events } = await tryOut('errs', { failing: 3 });
    expect(rollout.state, JSON.stringify(events.at(-1))).toBe('rolled_back');
    expect(rollout.decision?.readings.find(({ metric }) => metric === 'error')?.e).toBeGreaterThan(1);
    expect(bad(replies)).toEqual([]);
    const tenth = fallbacks(replies)[9];
    if (tenth) expect(at(rollout.endedAt!) - tenth.endedAt).toBeLessThan(3_000);
    expect(fallbacks(replies).length).toBeGreaterThan(1);
    expect(fallbacks(replies).every(({ version }) => version === 1)).toBe(true);
  });

  it.concurrent('one that is slower than allowed is rolled back for it', async () => {
    const { rollout, replies } = await tryOut('slow', { sleepMs: 180 });
    expect([rollout.state, rollout.reason]).toEqual(['rolled_back', expect.stringContaining('slow')]);
    expect(bad(replies)).toEqual([]);
  });

  it.concurrent('one whose answers are NaN is rolled back for its contract', async () => {
    const { rollout, replies } = await tryOut('nan', { nan: true });
    expect([rollout.state, rollout.reason]).toEqual(['rolled_back', expect.stringContaining('contract')]);
    expect(bad(replies)).toEqual([]);
  });

  it.concurrent('one without traffic waits, and says so', async () => {
    await publish('idle', { note: 'second' });
    await untilState('idle', ['shifting']);
    const waits = async () => ['waiting', 'held'].includes((await rolloutOf('idle').catch(() => undefined))?.run ?? '');
    await until(waits, 30_000, () => 'a rollout without traffic waits');
    expect((await rolloutOf('idle'))!.reason).toMatch(/traffic|requests|evidence/);
  });

  it.sequential('while the control plane is gone the candidate gets nothing after the lease, and its share back with it', async () => {
    await add('alone', { weightsPercent: [50], dwellMs: 300_000 });
    const load = loadOf('alone');
    try {
      await publish('alone', { note: 'second' });
      const isTried = (since: number) => () =>
        load.replies.some(({ arm, startedAt }) => arm === 'candidate' && startedAt > since);
      await until(isTried(0), 60_000, () => 'the candidate is tried');
      await stack.controlPlane.stop('SIGKILL');
      const goneAt = performance.now();
      const quiet = () => {
        const lately = load.replies.filter(({ startedAt }) => startedAt > performance.now() - 2_000);
        return lately.length > 20 && lately.every(({ arm }) => arm === 'stable');
      };
      await until(quiet, 30_000, () => 'the candidate gets nothing');
      expect(performance.now() - goneAt).toBeGreaterThan(12_000);
      const backAt = performance.now();
      await stack.controlPlane.start();
      await until(isTried(backAt), 30_000, () => 'the candidate gets its share back');
      expect(bad(await load.stop())).toEqual([]);
    } finally {
      await load.stop();
    }
  });
});
