import { type Rollout, rolloutStates } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { glyphsFor } from './glyphs.ts';
import { fakeDecision, fakeEvents, fakeNow, fakeRollout } from './rollout.fake.ts';
import { type RolloutView, renderRollout } from './view.plan.ts';
import type { Paint } from './words.plan.ts';

const plain = (text: string) => text;
const bare: Paint = { bold: plain, dim: plain, green: plain, yellow: plain, red: plain, cyan: plain };
const unicode = glyphsFor({ LANG: 'C.UTF-8' });
const draw = (rollout: Partial<Rollout> = {}, view: Partial<RolloutView> = {}) =>
  renderRollout({
    rollout: fakeRollout(rollout),
    events: fakeEvents,
    now: fakeNow,
    width: 80,
    glyphs: unicode,
    paint: bare,
    ...view,
  });
const picture = (...given: Parameters<typeof draw>) => `\n${draw(...given).join('\n')}\n`;

describe('the picture of a rollout at 80 columns', () => {
  it('in the middle of its way', () => {
    expect(picture()).toBe(`
text/minilm  version 3 → 4                                              shifting
────────────────────────────────────────────────────────────────────────────────
state     verifying › [shifting] › baking › promoted
traffic   ███░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  5 % on version 4
runs for  12 min; this step 3 min 10 s
why       The gap of error is 0.62 points and must come within 0.5.
next step in about 2 min 10 s, if nothing changes

error                             E 0.71  gap 0.62 over the margin of 0.5 points
  stable           14 of    12,311   0.114 %    ├──●────┤              ┃
  candidate         1 of       640   0.156 %  ├──────●─────────────────┃─────┤
                                              0                    ▲ 0.55 %

slow                              E 0.95  gap 1.92 within the margin of 2 points
  stable          130 of    12,290    1.06 %           ├──●──┤               ┃
  candidate         7 of       633    1.11 %     ├────────●─────────────────┤┃
                                              0                         ▲ 2.81 %

E         0.83; from 20 on it is rolled back
          ███████████████████████████████●░░░░░░░░░░░░░░░░░░░░░┃░░░░░░░░░░░░░░░░
          0.01           0.1              1              10   20         100

fallback  3 requests of version 4 answered by version 3

EVENTS
  3 min ago   step         5 % of requests: the gap of every metric allows it.
  5 min ago   resumed      ann (pk_1): Goes on.
  6 min ago   held         ann (pk_1): Paused to look at dashboards.
  11 min ago  stage        Ready and proven on 2 of 2 servers; 1 % of requests…
  12 min ago  started      Version 4 was published; stable is version 3.
`);
  });

  it('with feedback that comes later', () => {
    const feedback = [
      { flag: 'wrong_label', stable: { n: 23_700, x: 972 }, candidate: { n: 1_250, x: 50 }, differs: false },
      { flag: 'late', stable: { n: 3, x: 0 }, candidate: { n: 0, x: 0 }, differs: false },
    ];
    expect(draw({ decision: { ...fakeDecision, feedback } }, { events: [] }).slice(-2)).toEqual([
      'feedback  wrong_label: 4 % of 1,250 on version 4, 4.1 % of 23,700 on version 3',
      'feedback  late: none yet on version 4, 0 % of 3 on version 3',
    ]);
  });

  it('held, in a window of 24 rows and without UTF-8', () => {
    expect(
      picture({ run: 'held', heldBy: 'ann', queuedVersion: 5 }, { height: 24, glyphs: glyphsFor({ LANG: 'C' }) }),
    ).toBe(`
text/minilm  version 3 -> 4                                shifting, held by ann
--------------------------------------------------------------------------------
state     verifying > [shifting] > baking > promoted
traffic   ###.................................................  5 % on version 4
runs for  12 min; this step 3 min 10 s
why       The gap of error is 0.62 points and must come within 0.5.
next step in about 2 min 10 s, if nothing changes
queued    version 5 waits for the end of this

error                             E 0.71  gap 0.62 over the margin of 0.5 points
  stable           14 of    12,311   0.114 %    |--o----|              !
  candidate         1 of       640   0.156 %  |------o-----------------!-----|
slow                              E 0.95  gap 1.92 within the margin of 2 points
  stable          130 of    12,290    1.06 %           |--o--|               !
  candidate         7 of       633    1.11 %     |--------o-----------------|!
E         0.83; from 20 on it is rolled back
          ###############################o.....................!................
fallback  3 requests of version 4 answered by version 3

EVENTS
  3 min ago   step         5 % of requests: the gap of every metric allows it.
  5 min ago   resumed      ann (pk_1): Goes on.
  6 min ago   held         ann (pk_1): Paused to look at dashboards.
  11 min ago  stage        Ready and proven on 2 of 2 servers; 1 % of request...
`);
  });

  it('rolled back', () => {
    const at = new Date(fakeNow - 60_000).toISOString();
    const decision = { ...fakeDecision, verdict: 'roll_back' as const, e: 31.4, readings: [], nextStepInMs: null };
    expect(picture({ state: 'rolled_back', weightPercent: 0, endedAt: at, decision }, { events: [] })).toBe(
      `
text/minilm  version 3 → 4                                           rolled back
────────────────────────────────────────────────────────────────────────────────
state     verifying › shifting › baking › [rolled back]
traffic   ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 % on version 4
took      11 min
why       The gap of error is 0.62 points and must come within 0.5.

E         31.4; from 20 on it is rolled back
          █████████████████████████████████████████████████████┃██●░░░░░░░░░░░░░
          0.01           0.1              1              10   20         100

fallback  3 requests of version 4 answered by version 3
`,
    );
  });

  it('shadowing, before anything was judged', () => {
    const pairs = { pairs: 180, agree: 176, compared: 180, discordant: {}, dropped: 2 };
    expect(
      picture(
        { state: 'shadowing', weightPercent: 0, decision: null, pairs, fallbacks: 0, reason: '' },
        { events: [] },
      ),
    ).toBe(`
text/minilm  version 3 → 4                                             shadowing
────────────────────────────────────────────────────────────────────────────────
state     verifying › [shadowing] › shifting › baking › promoted
traffic   ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 % on version 4
runs for  12 min; this step 3 min 10 s

Nothing was judged yet.

shadow    180 pairs, 97.8 % of outputs agree, 2 not sent
`);
  });
});

const rate = fc.double({ min: 0, max: 1, noNaN: true });
const arm = fc
  .tuple(fc.nat({ max: 1e9 }), rate, rate, rate)
  .map(([n, x, a, b]) => ({ n, x: Math.floor(n * x), lower: Math.min(a, b), upper: Math.max(a, b) }));
const reading = fc.record({
  metric: fc.string({ unit: 'binary', maxLength: 64 }),
  stable: arm,
  candidate: arm,
  gap: fc.double({ min: -1, max: 1, noNaN: true }),
  margin: rate,
  e: fc.double({ min: 0, noNaN: true }),
  weight: rate,
});
const anyRollout = fc.record({
  state: fc.constantFrom(...rolloutStates),
  run: fc.constantFrom('running', 'waiting', 'held'),
  heldBy: fc.option(fc.string({ unit: 'binary', maxLength: 200 })),
  endpoint: fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }),
  reason: fc.string({ unit: 'binary', maxLength: 2_000 }),
  weightPercent: fc.double({ min: 0, max: 100, noNaN: true }),
  fallbacks: fc.nat(),
  sticky: fc.boolean(),
  decision: fc.option(
    fc.record({
      readings: fc.array(reading, { maxLength: 5 }),
      e: fc.double({ min: 0, noNaN: true }),
      threshold: fc.double({ min: 1, max: 1e6, noNaN: true }),
      nextStepInMs: fc.option(fc.double({ min: 0, max: 1e12, noNaN: true })),
    }),
  ),
});

describe('the picture of any rollout', () => {
  it('never is wider than the window (from 76 columns on) or higher, and holds nothing a terminal would obey', () => {
    fc.assert(
      fc.property(
        anyRollout,
        fc.integer({ min: 76, max: 300 }),
        fc.option(fc.integer({ min: 4, max: 80 }), { nil: undefined }),
        ({ decision, ...given }, width, height) => {
          const rollout = { ...given, decision: decision && { ...fakeDecision, ...decision } } as Partial<Rollout>;
          const lines = draw(rollout, { width, height });
          expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(Math.min(width, 120));
          if (height !== undefined) expect(lines.length).toBeLessThanOrEqual(height);
          expect(lines.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
        },
      ),
      { numRuns: 300, seed: 5 },
    );
  });

  it('says what a note says, last', () => {
    expect(draw({}, { height: 10, note: 'not up to date: cannot reach it' }).at(-1)).toBe(
      'not up to date: cannot reach it',
    );
  });
});
