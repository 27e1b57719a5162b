import { describe, expect, it } from 'vitest';
import { hashSecret, newSecret, sameHash } from './secret.ts';

describe('secrets', () => {
  it('carry their id in front, so that a person can tell which key it is', () => {
    const { id, secret, hash } = newSecret('pk');
    expect(id).toMatch(/^pk_[0-9a-f]{12}$/);
    expect(secret).toMatch(new RegExp(`^${id}_[0-9a-f]{48}$`));
    expect(hash).toBe(hashSecret(secret));
    expect(newSecret('jk').id).toMatch(/^jk_/);
  });

  it('are never given twice', () => {
    expect(new Set(Array.from({ length: 100 }, () => newSecret('pk').secret)).size).toBe(100);
  });

  it.each([
    ['ab', 'ab', true],
    ['ab', 'ac', false],
    ['ab', 'abc', false],
    ['', '', true],
  ])('compares %j and %j: %s', (a, b, same) => expect(sameHash(a, b)).toBe(same));
});
