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
    let body = addReading(nothingRead, reading([5, 100], [1, 10]), 0, 0);
    body = addReading(body, reading([6, 110], [900, 9_000], 3), 1, 0);
    expect(body.epochs[1]).toEqual({ stable: { events: 1, totals: 10 }, candidate: { events: 0, totals: 0 } });
  });

  type Look = [seconds: number, events: number, totals: number];
  const look = (figures: Look[]) => {
    let body = nothingRead;
    for (const [seconds, events, totals] of figures)
      body = addReading(body, reading([events, totals], [0, 0]), 0, seconds * 1_000);
    return [body.epochs[0]!.stable.events, body.epochs[0]!.stable.totals, body.stable!.fell !== null];
  };
  // biome-ignore format: one table
  it.each<[string, Look[], [events: number, totals: number, fell: boolean]]>([
    ['grows', [[0, 5, 100], [5, 6, 120]], [1, 20, false]],
    ['is away for a moment', [[0, 5, 100], [5, 0, 0], [10, 6, 120]], [1, 20, false]],
    ['is away in part, and then more of it', [[0, 5, 100], [5, 3, 60], [10, 1, 20], [15, 6, 110]], [1, 10, false]],
    ['began anew: not known yet', [[0, 5, 100], [5, 0, 0], [200, 1, 40]], [0, 0, true]],
    ['began anew: known now', [[0, 5, 100], [5, 0, 0], [200, 1, 40], [305, 2, 60]], [2, 60, false]],
    ['began anew, and went on', [[0, 5, 100], [5, 0, 0], [305, 2, 60], [310, 3, 80]], [3, 80, false]],
  ])('counts what %s', (_what, figures, wanted) => expect(look(figures)).toEqual(wanted));

  it('never counts more than there was, however often series are away, processes begin anew or looks are missed', () => {
    const step = fc.record({
      more: fc.nat(20),
      epoch: fc.nat(1),
      away: fc.boolean(),
      anew: fc.boolean(),
      look: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const still = reading([0, 0], [0, 0]);
        let [body, figure, total, epoch, nowMs] = [addReading(nothingRead, still, 0, 0), 0, 0, 0, 0];
        for (const one of steps) {
          nowMs += 5_000;
          epoch += one.epoch;
          if (one.anew) figure = 0;
          [figure, total] = [figure + one.more, total + one.more];
          const shown = one.away ? Math.floor(figure / 2) : figure;
          if (one.look) body = addReading(body, reading([shown, shown], [0, 0]), epoch, nowMs);
        }
        const counted = Object.values(body.epochs).reduce((sum, { stable }) => sum + stable.totals, 0);
        expect(counted).toBeLessThanOrEqual(total);
      }),
      { numRuns: 300 },
    );
  });
});

describe('providedMetric', () => {
  const epochs = [{ epoch: 0, share: 0.2, since: new Date(0) }];
  const none = addReading(nothingRead, reading([0, 0], [0, 0]), 0, 0);
  const body = addReading(none, reading([3, 80], [2.4, 20]), 0, 0);
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
    ['its figures fell', { body: addReading(body, reading([0, 0], [0, 0]), 0, 0) }, /fell/],
    ['it fails', { fault: 'it answers 500' }, /it answers 500/],
    [
      'events are more than requests',
      { body: addReading(none, reading([9, 3], [0, 0]), 0, 0) },
      /more events than requests/,
    ],
  ])('holds when %s', (_what, change, message) =>
    expect(providedMetric({ ...sight, ...change }, epochs, false).hold).toMatch(message),
  );
});
