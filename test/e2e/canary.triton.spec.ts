import type { QuarantineEntry, Rollout, RolloutEvent, RolloutPolicyInput } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Admin } from '../support/admin.ts';
import { ConstantLoad, type Reply } from '../support/load.ts';
import { faultyPython, pythonModel } from '../support/python-models.ts';
import { missingReason } from '../support/real-parts.ts';
import type { Stack } from '../support/stack.ts';
import { startTritonStack, type TritonStack } from '../support/triton-stack.ts';
import { Person } from './cli-stack.ts';

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
/** Of the routers' evidence: so long without the control plane, and the candidate gets nothing. */
const leaseMs = 15_000;
const goneMs = 60_000;

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
  let person: Person;
  const asAdmin = () => ({ PERCH_URL: stack.controlPlane.address, PERCH_API_KEY: stack.adminKey });
  beforeAll(async () => {
    person = await Person.make();
    whole = await startTritonStack();
    ({ stack, admin } = whole);
    await Promise.all(
      ['good', 'errs', 'slow', 'nan', 'idle', 'golden'].map((name) =>
        add(name, name === 'idle' ? { maxWaitMs: 1_000 } : {}),
      ),
    );
  });
  afterAll(async () => {
    await person?.leave();
    await whole?.stop();
  });

  const publish = (
    name: string,
    fault: Parameters<typeof faultyPython>[0] = {},
    more: Record<string, Uint8Array> = {},
  ) => admin.upload(`canary/${name}`, { ...pythonModel(name, faultyPython(fault)), ...more });
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
  async function tryOut(
    name: string,
    ...[fault, more]: [Parameters<typeof faultyPython>[0], Record<string, Uint8Array>?]
  ) {
    const load = loadOf(name);
    try {
      await publish(name, fault, more);
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

  // by itself: it asks the control plane, which another one kills
  it.sequential('one that answers a golden request wrongly is refused before it gets a request, and everybody can read why', async () => {
    const tensor = (name: string, value: number) => ({
      name,
      datatype: 'FP32',
      shape: [1, 4],
      data: Array(4).fill(value),
    });
    const wrong = { request: { inputs: [tensor('x', 3)] }, outputs: [tensor('y', 4)] };
    const file = { 'golden/threes.json': new TextEncoder().encode(JSON.stringify(wrong)) };
    const { rollout, replies, events } = await tryOut('golden', { note: 'second' }, file);
    const why = 'golden request threes: output y differs at [0,0]: wanted 4, got 3 (and 3 more of 4)';
    expect([rollout.state, rollout.reason]).toEqual(['rolled_back', expect.stringContaining(why)]);
    expect(events.map(({ type }) => type)).toEqual(['started', 'stage', 'rolled_back']); // never a weight
    expect(replies.filter(({ status, version }) => status !== 200 || version !== 1)).toEqual([]);
    expect(replies.length).toBeGreaterThan(0);
    const quarantine = await admin.must<{ items: QuarantineEntry[] }>('GET', '/endpoints/golden/quarantine');
    expect(quarantine.items).toEqual([expect.objectContaining({ version: 2, digest: rollout.candidate.digest })]);
    await admin.untilServed('golden', 1, input);
    for (const command of ['rollout show', 'endpoint show']) {
      const { out } = await person.run([...command.split(' '), 'golden'], { env: asAdmin() });
      expect(out.replace(/\s+/g, ' '), command).toContain(why);
    }
  });

  it.sequential('while the control plane is gone for a minute the candidate gets nothing after the lease, and its share back with it', async () => {
    await add('alone', { weightsPercent: [50], dwellMs: 300_000 });
    const load = loadOf('alone');
    try {
      await publish('alone', { note: 'second' });
      const triedSince = (since: number) =>
        load.replies.filter(({ arm, startedAt }) => arm === 'candidate' && startedAt > since).length;
      await until(
        () => triedSince(0) > 0,
        60_000,
        () => 'the candidate is tried',
      );
      await stack.controlPlane.stop('SIGKILL');
      const goneAt = performance.now();
      await until(
        () => performance.now() > goneAt + goneMs,
        2 * goneMs,
        () => 'a minute is over',
      );
      expect(triedSince(goneAt + leaseMs - 3_000)).toBeGreaterThan(0);
      expect(triedSince(goneAt + leaseMs + 500)).toBe(0);
      const backAt = performance.now();
      await stack.controlPlane.start();
      const isBack = () => triedSince(backAt) > 40;
      await until(isBack, 30_000, () => 'the candidate gets its share back');
      expect(await rolloutOf('alone')).toMatchObject({ state: 'shifting', weightPercent: 50 });
      const metrics = await (await fetch(`${stack.controlPlane.address}/metrics`)).text();
      expect(metrics).toMatch(/^perch_rollouts\{state="shifting",run="\w+"\} [1-9]/m);
      expect(bad(await load.stop())).toEqual([]);
    } finally {
      await load.stop();
    }
  }, 150_000);
});
