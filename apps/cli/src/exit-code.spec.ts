import { AppError, errorCodes } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { exitCodeOf, exitCodes } from './exit-code.ts';

describe('exit codes', () => {
  it('has one for every code', () => {
    expect(Object.keys(exitCodes).sort()).toEqual([...errorCodes].sort());
  });
  it.each([
    ['invalid', 2],
    ['not_available_yet', 2],
    ['not_found', 3],
    ['conflict', 4],
    ['precondition_failed', 4],
    ['unauthenticated', 5],
    ['forbidden', 5],
    ['unavailable', 6],
    ['timeout', 7],
    ['integrity', 1],
    ['internal', 1],
  ] as const)('%s is %i', (code, exit) => {
    expect(exitCodeOf(new AppError(code, 'x'))).toBe(exit);
  });
  it.each([[new Error('x')], [{ code: 'ENOENT' }], [undefined], ['text'], [{ code: 'toString' }]])(
    '%o is 1',
    (error) => {
      expect(exitCodeOf(error)).toBe(1);
    },
  );
});
