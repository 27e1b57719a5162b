import { Injectable } from '@nestjs/common';
import { type Actor, type ApiKey, AppError, type CreatedKey, type CreateKey, systemActor } from '@perch/contracts';
import { Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { actorText } from './audit.service.ts';
import { ChangeService } from './change.service.ts';
import { ApiKeyEntity } from './key.entity.ts';
import { type InferenceKey, KeyStore } from './key.store.ts';
import { hashSecret, newSecret } from './secret.ts';

/** Notified when a key changed: whoever remembers keys forgets them. */
export const keyChannel = 'perch_keys';

const shown = (key: ApiKeyEntity): ApiKey => ({
  id: key.id,
  name: key.name,
  role: key.role,
  projects: key.projects,
  endpoints: key.endpoints,
  createdAt: key.createdAt.toISOString(),
  expiresAt: key.expiresAt?.toISOString() ?? null,
  revokedAt: key.revokedAt?.toISOString() ?? null,
  lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
});

/** API keys: people and programs call the admin API and the endpoints with them. */
@Injectable()
export class KeyService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: KeyStore,
    private readonly work: WorkStore,
    private readonly changes: ChangeService,
  ) {}

  /** The secret is in the answer and nowhere else. Throws `invalid` for an expiry in the past, and for an admin with scopes. */
  async createKey(actor: Actor, wanted: CreateKey, now = new Date()): Promise<CreatedKey> {
    if (wanted.expiresAt && new Date(wanted.expiresAt) <= now)
      throw new AppError('invalid', `expiresAt: ${wanted.expiresAt} is over already; give a time to come`);
    if (wanted.role === 'admin' && wanted.projects.length + wanted.endpoints.length > 0)
      throw new AppError(
        'invalid',
        'role: an admin makes keys of any scope, so scopes would hold nobody back; leave them out',
      );
    const { id, secret, hash } = newSecret('pk');
    const { name, role, projects, endpoints } = wanted;
    const expiresAt = wanted.expiresAt ? new Date(wanted.expiresAt) : null;
    return this.transactions.run(async (tx) => {
      const createdBy = actorText(actor);
      const key = await this.store.insertKey(tx, { id, name, role, projects, endpoints, hash, createdBy, expiresAt });
      await this.changes.record(tx, actor, 'key.create', id, { name, role, projects, endpoints, expiresAt });
      await this.changed(tx);
      return { ...shown(key), secret };
    });
  }

  /** Oldest first; `after` is a position that `positionOf` wrote. */
  async list(limit: number, after?: string): Promise<ApiKey[]> {
    const [createdAt, id] = after?.split('|') ?? [];
    const position = createdAt && id ? { createdAt, id } : undefined;
    if (after !== undefined && (!position || Number.isNaN(Date.parse(position.createdAt))))
      throw new AppError('invalid', 'cursor: not one that this server gave; start again without it');
    return (await this.store.listKeys(this.transactions.manager, limit, position)).map(shown);
  }

  static positionOf(key: ApiKey): string {
    return `${key.createdAt}|${key.id}`;
  }

  /** Throws `not_found`; a key that was revoked before stays as it was. */
  async revoke(actor: Actor, id: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      if (!(await this.store.revoke(tx, ApiKeyEntity, id))) {
        if (await this.store.exists(tx, ApiKeyEntity, id)) return;
        throw new AppError('not_found', `key ${id} does not exist; "perch key list" shows the keys there are`);
      }
      await this.changes.record(tx, actor, 'key.revoke', id, {});
      await this.changed(tx);
    });
  }

  /** The admin key that the settings name: one row, which follows the setting when that changes. */
  async bootstrap(secret: string): Promise<void> {
    const key = { id: 'pk_bootstrap', name: 'bootstrap', role: 'admin', hash: hashSecret(secret) } as const;
    await this.transactions.run(async (tx) => {
      if (!(await this.store.putKey(tx, key))) return;
      await this.changes.record(tx, systemActor, 'key.bootstrap', key.id, { role: key.role });
      await this.changed(tx);
    });
  }

  /** Keys that may call endpoints now, as hashes, for the routing table. */
  inferenceKeys(tx: Tx = this.transactions.manager): Promise<InferenceKey[]> {
    return this.store.inferenceKeys(tx);
  }

  /** Has the routing table looked at when a key ran out within the last `withinMs`. */
  async announceExpired(withinMs: number): Promise<void> {
    if (await this.store.expiredWithin(this.transactions.manager, withinMs))
      await this.work.enqueue(null, 'routing-table', 'all');
  }

  private async changed(tx: Tx): Promise<void> {
    await tx.query('select pg_notify($1, $2)', [keyChannel, '']);
    await this.work.enqueue(tx, 'routing-table', 'all');
  }
}
