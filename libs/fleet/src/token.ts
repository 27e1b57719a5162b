import { randomBytes } from 'node:crypto';
import { sha256Hex } from '@perch/contracts';

/** Tokens of servers and routers; only the SHA-256 is kept. */
export const newToken = (): string => `pt_${randomBytes(32).toString('base64url')}`;
export const hashToken = (token: string): string => sha256Hex(token);
