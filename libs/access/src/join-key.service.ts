import { Injectable } from '@nestjs/common';
import { type Actor, type ApiKey, AppError, type CreatedKey, type CreateJoinKey, systemActor } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { actorText } from './audit.service.ts';
import { ChangeService } from './change.service.ts';
import { JoinKeyEntity } from './key.entity.ts';
import { KeyStore } from './key.store.ts';
import { hashSecret, newSecret, sameHash } from './secret.ts';

/** What a join key allows: to enrol servers of one pool, or routers. */
export interface JoinGrant {
  id: string;
  joins: 'server' | 'router';
  pool: string | null;
}

const shown = (key: JoinKeyEntity): ApiKey => ({
  id: key.id,
  name: key.name,
  role: `join-${key.joins}`,
  projects: [],
  endpoints: [],
  createdAt: key.createdAt.toISOString(),
  expiresAt: null,
  revokedAt: key.revokedAt?.toISOString() ?? null,
  pool: key.pool,
});

/** Join keys: an agent or a router turns one into an id and a token of its own. They open nothing else. */
@Injectable()
export class JoinKeyService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: KeyStore,
    private readonly changes: ChangeService,
  ) {}

  /** The secret is in the answer and nowhere else. */
  async createJoinKey(actor: Actor, { name, joins, ...wanted }: CreateJoinKey): Promise<CreatedKey> {
    const { id, secret, hash } = newSecret('jk');
    const pool = joins === 'server' ? wanted.pool : null;
    return this.transactions.run(async (tx) => {
      const key = await this.store.insertJoinKey(tx, { id, name, joins, pool, hash, createdBy: actorText(actor) });
      await this.changes.record(tx, actor, 'join-key.create', id, { name, joins, pool });
      return { ...shown(key), secret };
    });
  }

  async list(): Promise<ApiKey[]> {
    return (await this.store.listJoinKeys(this.transactions.manager)).map(shown);
  }

  /** Who enrolled with it stays enrolled. Throws `not_found`. */
  async revoke(actor: Actor, id: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (await this.store.revoke(tx, JoinKeyEntity, id))
        return this.changes.record(tx, actor, 'join-key.revoke', id, {});
      if (!(await this.store.exists(tx, JoinKeyEntity, id)))
        throw new AppError('not_found', `join key ${id} does not exist`);
    });
  }

  /** Null: no such key, or revoked. */
  async find(secret: string): Promise<JoinGrant | null> {
    const hash = hashSecret(secret);
    const key = await this.store.joinKeyByHash(this.transactions.manager, hash);
    return key && sameHash(key.hash, hash) ? { id: key.id, joins: key.joins, pool: key.pool } : null;
  }

  /** The join key that the settings name: one row a kind, which follows the setting when that changes. */
  async bootstrap(joins: JoinGrant['joins'], secret: string): Promise<void> {
    const pool = joins === 'server' ? 'default' : null;
    const key = { id: `jk_bootstrap_${joins}`, name: `bootstrap ${joins}`, joins, pool, hash: hashSecret(secret) };
    await this.transactions.run(async (tx) => {
      if (await this.store.putJoinKey(tx, key))
        await this.changes.record(tx, systemActor, 'join-key.bootstrap', key.id, { joins, pool });
    });
  }
}
