import { describe, expect, it } from 'vitest';
import { isFixture, isRecording, parseFixture, recordingOf } from './fixture.plan.ts';

const parse = (value: unknown) =>
  parseFixture(typeof value === 'string' ? value : JSON.stringify(value), 'fixtures/a.json');

describe('fixtures', () => {
  it('have a tolerance, also where none is given', () => {
    expect(parse({ body: { x: 1 }, wanted: 2 })).toEqual({
      body: { x: 1 },
      wanted: 2,
      tolerance: { absolute: 1e-6, relative: 1e-5 },
    });
    expect(parse({ body: 1, wanted: 2, tolerance: 0.1 }).tolerance).toEqual({ absolute: 0.1, relative: 0 });
    expect(parse({ body: 1, wanted: 2, tolerance: { relative: 0.1 } }).tolerance).toEqual({
      absolute: 1e-6,
      relative: 0.1,
    });
    expect(parse({ files: { image: 'cat.jpg' }, error: 'invalid' }).error).toBe('invalid');
    expect(parse({ body: null, wanted: null }).wanted).toBeNull();
  });

  it.each([
    ['no JSON', '{', 'is no JSON'],
    ['nothing wanted', { body: 1 }, 'wants either wanted (the reply) or error'],
    ['both wanted and error', { body: 1, wanted: 1, error: 'invalid' }, 'wants either'],
    ['nothing asked', { wanted: 1 }, 'wants body or files'],
    ['an unknown code', { body: 1, error: 'oops' }, 'error'],
    ['an unknown member', { body: 1, wanted: 1, wnated: 2 }, 'wnated'],
    ['a tolerance below 0', { body: 1, wanted: 1, tolerance: -1 }, 'tolerance'],
    ['a file elsewhere', { files: { a: '../../etc/passwd' }, wanted: 1 }, 'is not beside the fixture'],
    ['a file at the root', { files: { a: '/etc/passwd' }, wanted: 1 }, 'is not beside the fixture'],
  ])('refuses %s', (_name, value, words) =>
    expect(() => parse(value)).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining(words) }),
    ),
  );

  it('have recordings beside them', () => {
    expect(recordingOf('fixtures/a.json')).toBe('fixtures/a.recorded.json');
    expect([isFixture('a.json'), isFixture('a.recorded.json'), isFixture('cat.jpg'), isRecording('a.recorded.json')]).toEqual([
      true, false, false, true,
    ]); // biome-ignore format: one row
  });
});
