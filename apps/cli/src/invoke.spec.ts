import { AppError } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { errorText } from './invoke.ts';

describe('how an error is told', () => {
  it('is a sentence for a person', () => {
    expect(errorText(new AppError('not_found', 'there is no model a/b'), {})).toBe('perch: there is no model a/b');
  });
  it('names every further field at fault, and what another writer wrote', () => {
    const errors = ['a', 'b', 'c', 'd'].map((path) => ({ path, message: 'is wrong' }));
    const yours = [{ path: 'limits.timeoutMs', before: 1, after: 2 }];
    const theirs = [{ path: 'description', before: 'a', after: undefined }];
    expect(
      errorText(new AppError('conflict', 'no', { details: { errors, yours, theirs, changedBy: 'ann' } }), {}).split(
        '\n',
      ),
    ).toEqual([
      'perch: no',
      '  d: is wrong',
      '  ann: description: "a" -> (nothing)',
      '  you: limits.timeoutMs: 1 -> 2',
    ]);
  });
  it('is an object for a program', () => {
    const text = errorText(new AppError('unavailable', 'gone', { details: { lost: true, host: 'x' } }), {
      output: 'json',
    });
    expect(JSON.parse(text)).toEqual({ error: { code: 'unavailable', message: 'gone', details: { host: 'x' } } });
  });
  it('shows a stack only when asked, and lets no control character through', () => {
    const error = new Error('oops \u001b[2J');
    expect(errorText(error, {})).toBe(
      'perch: unexpected error: oops ?[2J\nRun it again with --debug to see where; please report it.',
    );
    expect(errorText(error, { debug: true })).toContain('invoke.spec.ts');
  });
});
