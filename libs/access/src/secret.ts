import { randomBytes, timingSafeEqual } from 'node:crypto';
import { sha256Hex } from '@perch/contracts';

export interface NewSecret {
  id: string;
  secret: string;
  hash: string;
}

/** `<prefix>_<id>_<random>`: the id may be shown and logged, the secret (192 random bits) is shown once. */
export function newSecret(prefix: 'pk' | 'jk', random: (bytes: number) => Buffer = randomBytes): NewSecret {
  const id = `${prefix}_${random(6).toString('hex')}`;
  const secret = `${id}_${random(24).toString('hex')}`;
  return { id, secret, hash: hashSecret(secret) };
}

/** What signs the requests to a webhook: 192 random bits. */
export const newWebhookSecret = (random: (bytes: number) => Buffer = randomBytes): string =>
  `whsec_${random(24).toString('hex')}`;

/** Secrets carry 192 random bits, so a plain hash cannot be guessed back and a slow one would gain nothing. */
export const hashSecret = (secret: string): string => sha256Hex(secret);

export const sameHash = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
