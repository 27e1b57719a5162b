import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type FeedbackClaims, feedbackClaims } from './evidence.schema.ts';

const mostCharacters = 2_000;

/** From `RouteRollout.feedbackKey`; to be kept, since making it costs as much as a signature. */
export const readFeedbackKey = (base64: string): KeyObject => createSecretKey(Buffer.from(base64, 'base64'));

const signatureOf = (body: string, key: KeyObject): Buffer => createHmac('sha256', key).update(body).digest();

/** `<base64url of the claims as JSON>.<base64url of the HMAC-SHA-256 of that text>` */
export function signFeedbackToken(claims: FeedbackClaims, key: KeyObject): string {
  const body = Buffer.from(JSON.stringify(claims)).toString('base64url');
  return `${body}.${signatureOf(body, key).toString('base64url')}`;
}

/**
 * What a token says before its signature was looked at: to find the rollout whose key signed it. Undefined: no token at
 * all.
 */
export function peekFeedbackToken(token: string): FeedbackClaims | undefined {
  const [body = '', signature, ...rest] = token.length <= mostCharacters ? token.split('.') : [];
  if (!signature || rest.length > 0) return undefined;
  try {
    return feedbackClaims.safeParse(JSON.parse(Buffer.from(body, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
}

/** Whether this key signed the token. */
export function isSignedBy(token: string, key: KeyObject): boolean {
  const [body = '', signature = ''] = token.split('.');
  const given = Buffer.from(signature, 'base64url');
  const wanted = signatureOf(body, key);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
