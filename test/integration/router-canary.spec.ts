import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { armOf, broken, CanaryStand, failing, floats, json, paths, right, tally, until } from './canary-stand.ts';
import { type Act, cut, fails } from './scripted-server.ts';

let at: CanaryStand;
beforeAll(async () => {
  at = await CanaryStand.start();
});
afterAll(() => at?.stop());

/** Three of every ten requests come to nothing. */
const threeOfTen = (): Act => {
  let count = 0;
  return (...call) => (count++ % 10 < 3 ? failing : right)(...call);
};

describe.concurrent('a candidate on trial', () => {
  it.each(paths)(
    'that fails three times of ten on %s: no client hears of it, and each is charged',
    async (_path, send) => {
      const trial = await at.trial({ share: 0.5 }, threeOfTen());
      const answers = await trial.many(120, () => send(trial));
      const { asked } = trial;
      const failed = Math.floor(asked / 10) * 3 + Math.min(3, asked % 10);
      expect(tally(answers)).toEqual({
        '200 1 stable': 120 - asked,
        '200 2 candidate': asked - failed,
        '200 1 stable; fallback': failed,
      });
      const { told, of } = await trial.judged(120, failed);
      expect([of('candidate', 'error'), of('stable', 'error')]).toEqual([[asked, failed], [120 - asked, 0]]); // biome-ignore format: one row
      expect(told.fallbacks).toBe(failed);
      expect(await trial.metric('perch_router_fallbacks_total')).toEqual([`{version="2",reason="failed"} ${failed}`]);
    },
  );

  it.each([
    ['cuts connections', cut, 'error', 'unready'],
    ['is not ready', fails(503, "Request for unknown model: 'm' version 1 is not at ready state"), 'error', 'unready'],
    ['does not know the model', fails(404, "Request for unknown model: 'm' is not found"), 'error', 'unready'],
    ['has a full queue', fails(503, 'Exceeds maximum queue size'), 'error', 'failed'],
    ['answers NaN', broken, 'contract', 'contract'],
    ['answers +∞', floats([1, Number.POSITIVE_INFINITY, 3, 4]), 'contract', 'contract'],
    ['answers another type', floats([1, 2], { datatype: 'FP64', shape: [1, 1] }), 'contract', 'contract'],
    ['answers another shape', floats([1, 2, 3, 4, 5]), 'contract', 'contract'],
    ['answers nothing', json(''), 'contract', 'contract'],
  ] as const)('that %s is answered for by stable', async (_what, act, metric, reason) => {
    const trial = await at.trial({}, act);
    const answers = [...(await trial.many(6, () => trial.serve())), ...(await trial.many(6, () => trial.infer()))];
    const counts = tally(answers);
    const fallen = counts['200 1 stable; fallback']!;
    expect([fallen > 8, fallen + counts['200 1 stable']!]).toEqual([true, 12]);
    const { told, of } = await trial.judged(12, fallen);
    expect([told.fallbacks, of('candidate', metric)]).toEqual([fallen, [fallen, fallen]]);
    for (const answer of answers) expect(answer.text).not.toMatch(/NaN|null/);
    expect(await trial.metric('perch_router_fallbacks_total')).toEqual([`{version="2",reason="${reason}"} ${fallen}`]);
  });

  it.each([
    ['bare NaN', '1,NaN,3,4'],
    ['null', '1,null,3,4'],
    ['no values', ''],
  ])('that answers %s as JSON is answered for by stable', async (_what, data) => {
    const trial = await at.trial({}, json(`{"name":"y","datatype":"FP32","shape":[1,4],"data":[${data}]}`));
    const answers = [...(await trial.many(6, () => trial.serve())), ...(await trial.many(6, () => trial.infer()))];
    const counts = tally(answers);
    const fallen = counts['200 1 stable; fallback']!;
    expect([fallen > 8, fallen + counts['200 1 stable']!]).toEqual([true, 12]);
    const { of } = await trial.judged(12, fallen);
    // over the protocol the words are seen; where tensors are wanted they cannot even be read
    const [faults, errors] = [of('candidate', 'contract')[1]!, of('candidate', 'error')[1]!];
    expect([faults > 3, faults + errors]).toEqual([true, fallen]);
  });

  it.each(paths)(
    'that hangs leaves stable half of the time on %s, and its own half is an error',
    async (_path, send) => {
      const open: ServerResponse[] = [];
      const trial = await at.trial({ route: { timeoutMs: 800 } }, (_request, response) => void open.push(response));
      const begun = performance.now();
      expect(armOf(await send(trial))).toBe('200 1 stable; fallback');
      expect(performance.now() - begun).toBeGreaterThanOrEqual(390);
      await until(() => open[0]!.destroyed, () => 'the end of the candidate’s connection'); // biome-ignore format: one row
      const { told, of } = await trial.judged(1, 1);
      expect([told.fallbacks, of('candidate', 'error')]).toEqual([1, [1, 1]]);
      expect(await trial.metric('perch_router_fallbacks_total')).toEqual(['{version="2",reason="late"} 1']);
    },
  );

  it('keeps all of its time where stable needs more than half', async () => {
    const slowly = (ms: number): Act => (...call) => void setTimeout(() => right(...call), ms); // biome-ignore format: one row
    const trial = await at.trial({ share: 0.5 }, slowly(900));
    at.stable.actFor.set(`${trial.name}-s`, slowly(850));
    let sent = 0;
    for (; at.stable.countOf(`${trial.name}-s`) === 0; sent += 1) await trial.serve();
    const counts = tally(await trial.many(12, () => trial.serve({ 'x-request-timeout-ms': '1500' })));
    expect(counts['200 1 stable']! + counts['200 2 candidate']!).toBe(12);
    const { of } = await trial.judged(sent + 12);
    expect([of('stable', 'error')[1], of('candidate', 'error')[1]]).toEqual([0, 0]);
  });

  it('whose module cannot make anything of its outputs is answered for, whatever the module calls that', async () => {
    const short = floats([1, 2], { shape: [1, 4] }); // fewer values than its shape: the module says `invalid`, a client's fault
    const trial = await at.trial({ rollout: { metrics: ['error'] } }, short);
    const counts = tally(await trial.many(10, () => trial.serve()));
    const fallen = counts['200 1 stable; fallback']!;
    expect([fallen > 5, fallen + counts['200 1 stable']!]).toEqual([true, 10]);
    const { of } = await trial.judged(10, fallen);
    expect(of('candidate', 'error')).toEqual([fallen, fallen]);
  });

  it('is the last to answer when stable has no server: any other version that is kept comes first', async () => {
    const trial = await at.trial({ share: 0.001, kept: true });
    const notReady = fails(503, "Request for unknown model: 'm' version 1 is not at ready state");
    at.stable.actFor.set(`${trial.name}-s`, notReady);
    const arms = new Set((await trial.many(10, () => trial.serve())).map(armOf));
    expect([...arms].filter((arm) => arm !== '200 2 candidate')).toEqual([`200 3 ${trial.name}-k`]);
    at.candidate.actFor.set(`${trial.name}-k`, notReady);
    expect(new Set((await trial.many(10, () => trial.serve())).map(armOf))).toEqual(new Set(['200 2 candidate']));
  });

  it('is judged by its first try alone: what another of its servers answers changes nothing', async () => {
    const trial = await at.trial({ servers: ['a', 'b'] }, cut);
    at.stable.actFor.set(`${trial.name}-c`, right);
    const counts = tally(await trial.many(40, () => trial.serve()));
    expect(counts['200 1 stable; fallback']).toBe(0);
    const { told, of } = await trial.judged(40);
    expect([of('candidate', 'error'), told.fallbacks]).toEqual([[counts['200 2 candidate'], trial.asked], 0]);
    expect(trial.asked).toBeGreaterThan(0);
  });

  it('is judged by nobody where the client left before, and stable is not asked', async () => {
    const open: ServerResponse[] = [];
    const trial = await at.trial({}, (_request, response) => void open.push(response));
    while (open.length === 0) {
      const leaving = new AbortController();
      const gone = trial.serve({}, leaving.signal).catch(() => undefined);
      await Promise.race([gone, until(() => open.length > 0, () => 'a hanging request')]); // biome-ignore format: one row
      leaving.abort();
      await gone;
    }
    await until(() => open[0]!.destroyed, () => 'the end of the candidate’s connection'); // biome-ignore format: one row
    const onStable = at.stable.countOf(`${trial.name}-s`);
    trial.answers(right);
    const answers = await trial.many(5, () => trial.infer());
    const { told, of } = await trial.judged(onStable + 5);
    expect(of('stable', 'error')[0]! + of('candidate', 'error')[0]!).toBe(onStable + answers.length);
    expect([of('candidate', 'error')[1], told.fallbacks]).toEqual([0, 0]);
  });

  it('is not answered for where the client is at fault', async () => {
    const trial = await at.trial({}, fails(400, "unexpected shape for input 'x' for model 'm'"));
    const answers = await trial.many(10, () => trial.infer());
    const refused = answers.filter((answer) => armOf(answer) === '400 2 candidate');
    expect([refused.length, refused.length > 5]).toEqual([trial.asked, true]);
    const { told, of } = await trial.judged(10);
    expect([told.fallbacks, of('candidate', 'error')]).toEqual([0, [trial.asked, 0]]);
  });

  it.each([
    ['a second run would do harm', { route: { idempotent: false } }],
    ['its policy has no fallback', { rollout: { fallback: null } }],
  ])('is not answered for where %s; a reply that breaks its contract then goes to the client', async (_why, fields) => {
    const trial = await at.trial(fields, failing);
    const failed = (await trial.many(10, () => trial.serve())).filter(({ status }) => status === 502).length;
    expect([failed > 5, failed]).toEqual([true, trial.asked]);
    trial.answers(broken);
    const answers = await trial.many(10, () => trial.infer());
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const { told, of } = await trial.judged(20);
    expect([of('candidate', 'contract'), told.fallbacks]).toEqual([[trial.asked - failed, trial.asked - failed], 0]);
  });

  it('is answered for 50 times in 10 s where that is more than the share, and then no more', async () => {
    const trial = await at.trial({ rollout: { fallback: { budgetPercent: 1 } } }, failing);
    const counts = tally(await trial.many(64, () => trial.serve()));
    const onStable = counts['200 1 stable']!;
    expect([counts['200 1 stable; fallback'], counts['502 2 candidate']]).toEqual([50, 14 - onStable]);
    const { told, of } = await trial.judged(64, 50);
    expect([of('candidate', 'error'), told.fallbacks]).toEqual([[64 - onStable, 64 - onStable], 50]);
    const refused = await trial.metric('perch_router_fallbacks_refused_total');
    expect(refused).toEqual([`{version="2",reason="failed"} ${14 - onStable}`]);
  });

  it('answers for none of stable’s own failures', async () => {
    const trial = await at.trial({ share: 0.001 });
    at.stable.actFor.set(`${trial.name}-s`, failing);
    const answers = await trial.many(10, () => trial.serve());
    const failed = 10 - trial.asked;
    expect(answers.filter((answer) => armOf(answer) === '502 1 stable').length).toBe(failed);
    const { told, of } = await trial.judged(10);
    expect([of('stable', 'error'), told.fallbacks]).toEqual([[failed, failed], 0]);
  });

  it('is named by its side, pinned requests too; pins and questions count for nobody', async () => {
    const trial = await at.trial({ share: 0.5 });
    expect(armOf(await trial.serve({ 'x-perch-version': '2' }))).toBe('200 2 candidate');
    expect(armOf(await trial.infer({ 'x-perch-version': '1' }))).toBe('200 1 stable');
    trial.answers(failing);
    expect(armOf(await trial.serve({ 'x-perch-version': '2' }))).toBe('502 2 candidate');
    trial.answers(right);
    for (let i = 0; i < 8; i += 1) expect((await at.router.send(`/v2/models/${trial.name}`)).status).toBe(200);
    await trial.many(20, () => trial.serve());
    const { of } = await trial.judged(20);
    expect(of('stable', 'error')[0]! + of('candidate', 'error')[0]!).toBe(20);
    const requests = await trial.metric('perch_router_requests_total');
    expect(requests).toContain('{version="2",arm="candidate",outcome="upstream"} 1');
  });

  it.each([
    ['its contract is not judged', ['error']],
    ['nothing is judged but a flag', ['sad']],
  ])('is not held against its outputs where %s', async (_why, metrics) => {
    const trial = await at.trial({ rollout: { metrics } }, broken);
    await trial.many(10, () => trial.serve());
    const { told, of } = await trial.judged(10);
    expect([of('candidate', 'contract'), told.fallbacks]).toEqual([[0, 0], 0]);
    expect(await trial.metric('perch_router_contract_faults_total')).toEqual([]);
  });
});
