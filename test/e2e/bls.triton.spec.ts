import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Admin } from '../support/admin.ts';
import { ConstantLoad } from '../support/load.ts';
import { callerPython, pythonModel, scalePython } from '../support/python-models.ts';
import { missingReason } from '../support/real-parts.ts';
import type { Stack } from '../support/stack.ts';
import { startTritonStack, type TritonStack } from '../support/triton-stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const own = 1_000;
const factors = [10, 20, 30];

/** The answer of a caller whose used model multiplies by `factor`. */
const answerOf = (factor: number) => [1, 2, 3, 4].map((x) => x * factor + own).join(',');
const factorOf = (body: string) =>
  factors.find((factor) => body.replaceAll(/\s/g, '').replaceAll('.0', '').includes(answerOf(factor)));

/**
 * A Python model calls another Perch model on the same server, under load, while that one is updated twice. No request
 * may fail, and the answers may only move from the older version's to the newer one's.
 */
describe.skipIf(missingReason('triton'))('business-logic scripting on the real Triton', () => {
  let whole: TritonStack;
  let stack: Stack;
  let admin: Admin;
  beforeAll(async () => {
    whole = await startTritonStack();
    ({ stack, admin } = whole);
  });
  afterAll(() => whole?.stop());

  async function untilFactor(endpoint: string, factor: number): Promise<void> {
    await expect
      .poll(async () => factorOf(JSON.stringify((await admin.serve(endpoint, input)).body)), {
        timeout: 60_000,
        interval: 100,
        message: `${endpoint} answers by ${factor}\n`,
      })
      .toBe(factor);
  }

  it.each(['literal', 'parameter'] as const)('goes through two updates of the called model, held as %s', async (as) => {
    const scorer = `bls/scorer-${as}`;
    const called = `scorer_${as}`;
    const endpoint = `bls/${as}`;
    await admin.upload(scorer, pythonModel(called, scalePython(factors[0]!)));
    await admin.upload(`bls/caller-${as}`, pythonModel('caller', callerPython(called, own)), {
      uses: { [called]: { model: scorer, as } },
    });
    await admin.addEndpoint({ name: endpoint, model: { project: 'bls', name: `caller-${as}` } });
    await admin.untilServed(endpoint, 1, input, 60_000);
    await untilFactor(endpoint, factors[0]!);

    const load = new ConstantLoad(
      `${stack.router.address}/serve/${endpoint}`,
      { authorization: `Bearer ${stack.adminKey}` },
      JSON.stringify(input),
      40,
    ).start();
    try {
      for (const factor of factors.slice(1)) {
        await admin.upload(scorer, pythonModel(called, scalePython(factor)));
        await untilFactor(endpoint, factor);
        // The load asks on its own beat: it ends when it was answered by each of them.
        const answeredByIt = () => load.replies.some(({ body }) => factorOf(body) === factor);
        await expect.poll(answeredByIt, { timeout: 30_000 }).toBe(true);
      }
    } finally {
      await load.stop();
    }

    const bad = load.replies.filter(({ status }) => status !== 200);
    expect(bad.slice(0, 3), bad.length > 0 ? await stack.logs() : '').toEqual([]);
    const answered = [...load.replies].map((reply) => ({ ...reply, factor: factorOf(reply.body) }));
    expect(answered.filter(({ factor }) => factor === undefined).slice(0, 3)).toEqual([]);
    expect(new Set(answered.map(({ factor }) => factor))).toEqual(new Set(factors));
    // What was answered before a request began is never older than its answer.
    const stale = answered.filter((reply) =>
      answered.some(({ endedAt, factor }) => endedAt < reply.startedAt && factor! > reply.factor!),
    );
    const changes = () => admin.must('GET', `/endpoints/${encodeURIComponent(endpoint)}/logs`);
    expect(stale.slice(0, 3), stale.length > 0 ? JSON.stringify(await changes(), null, 1) : '').toEqual([]);
  });

  it('a broken update of the called model takes nothing away, and the reason names it', async () => {
    const answered = async () => factorOf(JSON.stringify((await admin.serve('bls/literal', input)).body));
    const reasons = async () => (await admin.endpoint('bls/literal')).deployments.map(({ reason }) => reason).join();
    await admin.upload('bls/scorer-literal', pythonModel('scorer_literal', 'raise RuntimeError("no scorer")'));
    await expect.poll(reasons, { timeout: 60_000, interval: 100 }).toContain('needs scorer_literal, which failed');
    expect(await reasons()).toContain('no scorer');
    expect(await answered()).toBe(factors.at(-1));
    await admin.upload('bls/scorer-literal', pythonModel('scorer_literal', scalePython(factors[0]!)));
    await untilFactor('bls/literal', factors[0]!);
  });
});
