import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { type Actor, AppError } from '@perch/contracts';
import { LOGGER, type Logger } from '@perch/platform';
import { Transactions, Wakeups } from '@perch/platform/database';
import type { ApiKeyEntity } from './key.entity.ts';
import { keyChannel } from './key.service.ts';
import { KeyStore } from './key.store.ts';
import { hashSecret, sameHash } from './secret.ts';

/** How long a key that was looked up is believed; a change anywhere is heard at once while the database is there. */
const rememberMs = 5_000;
const rememberAtMost = 10_000;

interface Known {
  key: ApiKeyEntity;
  until: number;
}

const unknownKey = () =>
  new AppError('unauthenticated', 'the key is not known; "perch login" with one that "perch key create" showed');

/** Who calls: a secret becomes an actor. */
@Injectable()
export class AuthenticationService implements OnModuleInit, OnApplicationShutdown {
  private readonly known = new Map<string, Known>();
  private stopListening: (() => void) | undefined;

  constructor(
    private readonly transactions: Transactions,
    private readonly store: KeyStore,
    private readonly wakeups: Wakeups,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.stopListening = this.wakeups.on(keyChannel, () => this.known.clear());
  }

  onApplicationShutdown(): void {
    this.stopListening?.();
  }

  /** Throws `unauthenticated` (unknown, revoked, expired) or `unavailable`, when the database cannot be asked. */
  async authenticate(secret: string, now = Date.now()): Promise<Actor> {
    const hash = hashSecret(secret);
    const key = await this.find(hash, now);
    if (!key || !sameHash(key.hash, hash)) throw unknownKey();
    if (key.revokedAt) throw new AppError('unauthenticated', `key ${key.id} was revoked; ask an admin for another`);
    if (key.expiresAt && key.expiresAt.getTime() <= now)
      throw new AppError(
        'unauthenticated',
        `key ${key.id} ran out at ${key.expiresAt.toISOString()}; ask an admin for another`,
      );
    return { id: key.id, name: key.name, role: key.role, projects: key.projects, endpoints: key.endpoints };
  }

  private async find(hash: string, now: number): Promise<ApiKeyEntity | null> {
    const hit = this.known.get(hash);
    if (hit && hit.until > now) return hit.key;
    const key = await this.store.keyByHash(this.transactions.manager, hash);
    this.known.delete(hash);
    if (!key) return null;
    if (this.known.size >= rememberAtMost) this.known.clear();
    this.known.set(hash, { key, until: now + rememberMs });
    this.store.touch(this.transactions.manager, key.id).catch((error: unknown) => {
      this.logger.debug('last use of a key not noted', { key: key.id, error });
    });
    return key;
  }
}
