import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { FeedbackClaims } from './evidence.schema.ts';
import { isSignedBy, peekFeedbackToken, readFeedbackKey, signFeedbackToken } from './feedback-token.ts';

const newKey = () => readFeedbackKey(randomBytes(32).toString('base64'));
const claims: FeedbackClaims = { r: 'r1', e: 3, a: 'candidate', b: 17, q: 'id-1', iat: 1_700_000_000 };
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('feedback tokens', () => {
  const key = newKey();
  const token = signFeedbackToken(claims, key);

  it('say what was signed, and are signed by that key alone', () => {
    expect(peekFeedbackToken(token)).toEqual(claims);
    expect(isSignedBy(token, key)).toBe(true);
    expect(isSignedBy(token, newKey())).toBe(false);
  });
  it.each<[string, string]>([
    ['other claims', `${encode({ ...claims, a: 'stable' })}.${token.split('.')[1]}`],
    ['no signature', token.split('.')[0]!],
    ['an empty signature', `${token.split('.')[0]}.`],
    ['half a signature', token.slice(0, -20)],
    ['nothing', ''],
  ])('%s is not signed', (_, forged) => expect(isSignedBy(forged, key)).toBe(false));
  it.each<[string, string]>([
    ['nothing', ''],
    ['one part', 'abc'],
    ['three parts', `${token}.x`],
    ['no JSON', `${Buffer.from('{').toString('base64url')}.x`],
    ['other fields', `${encode({ r: 1 })}.x`],
    ['an arm that there is not', `${encode({ ...claims, a: 'third' })}.x`],
    ['too long', `${encode({ ...claims, r: 'r'.repeat(2_000) })}.x`],
  ])('%s is no token', (_, text) => expect(peekFeedbackToken(text)).toBeUndefined());
});
