import { isSignedBy, type Route, readFeedbackKey } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route, target } from '../../bench/control-stub.mjs';
import { byteTokenizer, modelVocabulary } from '../support/generation.ts';
import { CanaryStand, floats, Trial, until } from './canary-stand.ts';
import { type Act, fails } from './scripted-server.ts';

/** Logits after which greedy decoding says this letter. */
const says = (letter: string): Act =>
  floats(
    Array.from({ length: modelVocabulary }, (_, id) => (id === letter.charCodeAt(0) ? 1 : 0)),
    { name: 'logits' },
  );
/** Does one after the other, and the last for ever. */
const inTurn = (...acts: Act[]): Act => {
  let count = 0;
  return (...call) => acts[Math.min(count++, acts.length - 1)]!(...call);
};
const later = (ms: number, act: Act): Act => (...call) => void setTimeout(() => act(...call), ms); // biome-ignore format: one row
const notReady = fails(503, "Request for unknown model: 'm' version 1 is not at ready state");
const failing = fails(500, 'the model says no');

const key = Buffer.alloc(32, 7).toString('base64');
let at: CanaryStand;
let made = 0;

/** Nearly all of its requests go to the candidate, whose model does as told; stable's says "s". */
async function streamTrial(act: Act, more: Partial<Route> = {}): Promise<Trial> {
  const name = `s${++made}`;
  const processing = { builtin: 'text-generation', options: {} };
  const files = [at.router.control.addBlob('tokenizer.json', Buffer.from(byteTokenizer()))];
  const targetOf = (side: 's' | 'c', version: number) =>
    target({
      deployment: `${name}-${side}`, version, tritonModel: `${name}-${side}`, servers: [side === 's' ? 'a' : 'b'], processing, files,
      inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1] }],
      outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, modelVocabulary] }],
    }); // biome-ignore format: one row
  const trial = new Trial(at, name);
  trial.answers(act);
  at.stable.actFor.set(`${name}-s`, says('s'));
  const rollout = {
    id: name, epoch: 1, stable: `${name}-s`, candidate: `${name}-c`, salt: 'salt', leaseMs: 15_000, slowMs: null, slowGraceMs: 0,
    metrics: ['error'], fallback: { budgetPercent: 20 }, shadow: null, feedbackKey: key,
  }; // biome-ignore format: one row
  const arms = [{ deployment: `${name}-s`, share: 0 }, { deployment: `${name}-c`, share: 1 }]; // biome-ignore format: one row
  await at.add(name, route([targetOf('s', 1), targetOf('c', 2)], { arms, rollout, ...more }));
  return trial;
}

const body = { prompt: 'x', temperature: 0, maxTokens: 4, stream: true };
const generate = ({ name }: Trial, fields: object = {}) => at.router.post(`/serve/${name}`, { ...body, ...fields });
const eventsOf = (text: string) => text.split('\n\n').filter(Boolean);

describe('streams of a candidate on trial', () => {
  beforeAll(async () => {
    at = await CanaryStand.start();
  });
  afterAll(() => at?.stop());

  it('are stable’s where the candidate failed before its first event', async () => {
    const trial = await streamTrial(failing);
    const { text, headers } = await generate(trial);
    expect(headers.get('x-perch-arm')).toBe('stable; fallback');
    expect(headers.get('x-perch-feedback-token')).toBeNull(); // its prediction is not the candidate's
    expect(eventsOf(text)).toHaveLength(5);
    expect(eventsOf(text).at(-1)).toContain('"text":"ssss"');
    const { told, of } = await trial.judged(1, 1);
    expect([told.fallbacks, of('candidate', 'error')]).toEqual([1, [1, 1]]);
  });

  it.each([
    ['fails', failing, 'upstream'],
    ['has no server any more', notReady, 'unavailable'],
  ])('end with an error where it %s after its first event: nobody goes on in its place', async (_, act, code) => {
    const trial = await streamTrial(inTurn(says('c'), says('c'), act));
    const { status, text, headers } = await generate(trial);
    expect([status, headers.get('x-perch-arm')]).toEqual([200, 'candidate']);
    const events = eventsOf(text);
    expect(events.slice(0, 2)).toEqual(['data: {"piece":"c"}', 'data: {"piece":"c"}']);
    expect(events[2]).toMatch(/^event: error\ndata: \{"error":\{"code":/);
    expect(JSON.parse(events[2]!.split('data: ')[1]!).error).toMatchObject({
      code,
      requestId: headers.get('x-request-id'),
    });
    expect(at.stable.countOf(`${trial.name}-s`)).toBe(0);
    const { told, of } = await trial.judged(1);
    expect([told.fallbacks, of('candidate', 'error')]).toEqual([0, [1, 1]]);
    expect(await trial.metric('perch_router_requests_total')).toEqual([
      `{version="2",arm="candidate",outcome="${code}"} 1`,
    ]);
  });

  it('are judged by the time to their first event, and may take all of their time', async () => {
    const trial = await streamTrial(later(150, says('c')), { timeoutMs: 1_500 });
    const { text, headers } = await generate(trial, { maxTokens: 7 });
    expect(headers.get('x-perch-arm')).toBe('candidate');
    expect(text).toContain('"text":"ccccccc"');
    expect(isSignedBy(headers.get('x-perch-feedback-token')!, readFeedbackKey(key))).toBe(true);
    const { of } = await trial.judged(1);
    expect(of('candidate', 'error')).toEqual([1, 0]);
  });

  it('end with the client: the model is asked no further', async () => {
    const trial = await streamTrial(later(20, says('c')));
    const leaving = new AbortController();
    const response = await fetch(`${at.router.router.address}/serve/${trial.name}`, {
      method: 'POST', body: JSON.stringify({ ...body, maxTokens: 400 }), signal: leaving.signal,
    }); // biome-ignore format: one row
    const reader = response.body!.getReader();
    await reader.read();
    leaving.abort();
    await until(() => at.router.control.counts[trial.name]?.['2']?.requests === 1, () => 'the count of the request'); // biome-ignore format: one row
    const { asked } = trial;
    expect(asked).toBeLessThan(100);
    expect(await trial.metric('perch_router_requests_total')).toEqual([
      '{version="2",arm="candidate",outcome="cancelled"} 1',
    ]);
    expect(trial.asked).toBe(asked);
  });
});
