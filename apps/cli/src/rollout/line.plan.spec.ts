import { describe, expect, it } from 'vitest';
import { lineOfChange, standLine } from './line.plan.ts';
import { fakeDecision, fakeEvents, fakeRollout } from './rollout.fake.ts';

const seen = (given: Parameters<typeof fakeRollout>[0] = {}, events = fakeEvents, note?: string) => ({
  rollout: fakeRollout(given),
  events,
  note,
});

describe('lines of a rollout', () => {
  it('tell what happened and where it stands, once', () => {
    const first = lineOfChange(undefined, seen(), true);
    expect(first).toHaveLength(6);
    expect(first[2]).toBe('2026-03-01T12:24:00.000Z  held         ann (pk_1): Paused to look at dashboards.');
    expect(first[5]).toBe(
      'text/minilm: version 3 to 4, shifting, 5 % of requests (E 0.83 of 20, error gap 0.62 of 0.5, slow gap 1.92 of 2, next step in about 2 min 10 s): The gap of error is 0.62 points and must come within 0.5.',
    );
    expect(lineOfChange(seen(), seen(), true)).toEqual([]);
  });

  it('say nothing where only counts changed', () => {
    const later = seen({ reason: 'The gap of error is 0.6 points.', decision: { ...fakeDecision, e: 0.9 } });
    expect(lineOfChange(seen(), later, true)).toEqual([]);
  });

  it.each([
    ['a new event', seen(), 'step         5 %'],
    ['another weight', seen({ weightPercent: 25 }, fakeEvents.slice(0, 4)), '25 % of requests'],
    ['a pause', seen({ run: 'held', heldBy: 'ann' }, fakeEvents.slice(0, 4)), 'shifting, held by ann'],
    ['a control plane that is away', seen({}, fakeEvents.slice(0, 4), 'not up to date: gone'), 'not up to date: gone'],
  ])('%s is a line', (_name, after, words) => {
    const lines = lineOfChange(seen({}, fakeEvents.slice(0, 4)), after, true);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(words);
  });

  it('are objects for programs', () => {
    const lines = lineOfChange(seen({}, fakeEvents.slice(0, 4)), seen({ weightPercent: 25 }), false);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { event: { id: 5 } },
      { rollout: { weightPercent: 25 } },
    ]);
  });

  it('hold nothing that a terminal would obey', () => {
    expect(standLine(fakeRollout({ reason: 'a\u001b[31m\nb' }))).not.toMatch(/[\u0000-\u001f]/);
  });
});
