import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addReading,
  fillQuery,
  nothingRead,
  type ProvidedReading,
  type ProvidedSight,
  providedMetric,
  readAnswer,
} from './provided.decide.ts';

const success = (data: unknown) => ({ status: 'success', data });
const vector = (...values: string[]) =>
  success({ resultType: 'vector', result: values.map((value) => ({ metric: { job: 'x' }, value: [1.5, value] })) });

describe('readAnswer', () => {
  it.each<[string, unknown, number]>([
    ['a vector of one', vector('12'), 12],
    ['what increase() yields', vector('12.25'), 12.25],
    ['an exponent', vector('1e+06'), 1_000_000],
    ['nothing yet', vector(), 0],
    ['a scalar', success({ resultType: 'scalar', result: [1.5, '7'] }), 7],
    ['with remarks', { ...vector('3'), warnings: ['slow'], infos: ['odd'] }, 3],
  ])('%s', (_what, body, wanted) => expect(readAnswer(200, body)).toBe(wanted));

  it.each<[string, number, unknown, RegExp]>([
    [
      'an error',
      422,
      { status: 'error', errorType: 'execution', error: 'too many samples' },
      /422: execution: too many/,
    ],
    ['no JSON', 502, undefined, /answers 502/],
    ['JSON of somebody else', 200, { hello: 1 }, /answers 200/],
    ['two series', 200, vector('1', '2'), /2 series; sum/],
    ['a range', 200, success({ resultType: 'matrix', result: [] }), /a matrix/],
    ['NaN', 200, vector('NaN'), /NaN/],
    ['infinity', 200, vector('+Inf'), /Inf/],
    ['less than nothing', 200, vector('-1'), /-1/],
    ['no text', 200, success({ resultType: 'scalar', result: [1.5, ''] }), /wanted is a count/],
    [
      'a histogram in the place of a value',
      200,
      success({ resultType: 'vector', result: [{ histogram: [] }] }),
      /wanted/,
    ],
  ])('refuses %s', (_what, status, body, message) => expect(() => readAnswer(status, body)).toThrow(message));
});

describe('fillQuery', () => {
  const names = { endpoint: 'text/a', version: 7, arm: 'candidate' as const };
  it('fills in what it knows, and leaves braces of PromQL alone', () => {
    expect(fillQuery('sum(bad{e="{{endpoint}}",v="{{ version }}"}) or {{arm}}', names)).toBe(
      'sum(bad{e="text/a",v="7"}) or candidate',
    );
  });
  it('lets no value leave its quotes', () => {
    expect(fillQuery('x{e="{{endpoint}}"}', { ...names, endpoint: 'a"} or vector(0) #\n' })).toBe(
      'x{e="a\\"} or vector(0) #\\n"}',
    );
  });
  it('refuses a name it does not know', () => expect(() => fillQuery('{{pod}}', names)).toThrow(/\{\{pod\}\}/));
});

const reading = (stable: [number, number], candidate: [number, number], version = 2): ProvidedReading => ({
  stable: { events: stable[0], totals: stable[1] },
  candidate: { events: candidate[0], totals: candidate[1] },
  versions: { stable: 1, candidate: version },
});

describe('addReading', () => {
  it('starts anew with another version, and goes on with the arm that stayed', () => {
    let body = addReading(nothingRead, reading([5, 100], [1, 10]), 0);
    body = addReading(body, reading([6, 110], [900, 9_000], 3), 1);
    expect(body.epochs[1]).toEqual({ stable: { events: 1, totals: 10 }, candidate: { events: 0, totals: 0 } });
  });

  it('never counts more than there was, however often figures fall or looks are missed', () => {
    const step = fc.record({ more: fc.nat(20), bad: fc.nat(5), falls: fc.boolean(), look: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let [body, figure, total, epoch] = [addReading(nothingRead, reading([0, 0], [0, 0]), 0), 0, 0, 0];
        for (const { more, bad, falls, look } of steps) {
          if (falls) figure = Math.floor(figure / 2);
          [figure, total] = [figure + more, total + more];
          if (!look) continue;
          epoch += bad % 2;
          body = addReading(body, reading([figure, figure], [0, 0]), epoch);
        }
        const counted = Object.values(body.epochs).reduce((sum, { stable }) => sum + stable.totals, 0);
        expect(counted).toBeLessThanOrEqual(total);
      }),
      { numRuns: 200 },
    );
  });
});

describe('providedMetric', () => {
  const epochs = [{ epoch: 0, share: 0.2, since: new Date(0) }];
  const body = addReading(addReading(nothingRead, reading([0, 0], [0, 0]), 0), reading([3, 80], [2.4, 20]), 0);
  const sight: ProvidedSight = { metric: 'fraud', body, ageMs: 1_000, fault: null };

  it('is counted like any other', () => {
    expect(providedMetric(sight, epochs, false)).toMatchObject({
      hold: null,
      counts: {
        epochs: [{ epoch: 0, share: 0.2, stableEvents: 3, candidateEvents: 2 }],
        stable: { n: 80, x: 3 },
        candidate: { n: 20, x: 2 },
      },
    });
  });
  it('never rolls back under a sticky key', () =>
    expect(providedMetric(sight, epochs, true).counts.epochs).toEqual([]));
  it.each<[string, Partial<ProvidedSight>, RegExp]>([
    ['it was never read', { ageMs: null }, /not asked yet/],
    ['it is old', { ageMs: 61_000 }, /61 s old/],
    ['it fails', { fault: 'it answers 500' }, /it answers 500/],
    [
      'events are more than requests',
      { body: addReading(addReading(nothingRead, reading([0, 0], [0, 0]), 0), reading([9, 3], [0, 0]), 0) },
      /more events than requests/,
    ],
  ])('holds when %s', (_what, change, message) =>
    expect(providedMetric({ ...sight, ...change }, epochs, false).hold).toMatch(message),
  );
});
