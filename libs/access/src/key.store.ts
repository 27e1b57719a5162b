import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';
import { IsNull } from 'typeorm';
import { ApiKeyEntity, JoinKeyEntity } from './key.entity.ts';

export interface InferenceKey {
  id: string;
  hash: string;
  endpoints: string[];
}

type NewKey<T> = Omit<T, 'createdAt' | 'revokedAt' | 'lastUsedAt'>;

/** The only SQL for keys. */
@Injectable()
export class KeyStore {
  async insertKey(tx: Tx, key: NewKey<ApiKeyEntity>): Promise<ApiKeyEntity> {
    await tx.insert(ApiKeyEntity, key);
    return tx.findOneByOrFail(ApiKeyEntity, { id: key.id });
  }

  async insertJoinKey(tx: Tx, key: NewKey<JoinKeyEntity>): Promise<JoinKeyEntity> {
    await tx.insert(JoinKeyEntity, key);
    return tx.findOneByOrFail(JoinKeyEntity, { id: key.id });
  }

  keyByHash(tx: Tx, hash: string): Promise<ApiKeyEntity | null> {
    return tx.findOneBy(ApiKeyEntity, { hash });
  }

  joinKeyByHash(tx: Tx, hash: string): Promise<JoinKeyEntity | null> {
    return tx.findOneBy(JoinKeyEntity, { hash, revokedAt: IsNull() });
  }

  /** Oldest first; `after` is the position (creation time, id) of the last one seen. */
  listKeys(tx: Tx, limit: number, after?: { createdAt: string; id: string }): Promise<ApiKeyEntity[]> {
    const query = tx
      .createQueryBuilder(ApiKeyEntity, 'key')
      .orderBy('key.created_at')
      .addOrderBy('key.id')
      .limit(limit);
    if (after) query.where('(key.created_at, key.id) > (:createdAt::timestamptz, :id)', after);
    return query.getMany();
  }

  listJoinKeys(tx: Tx): Promise<JoinKeyEntity[]> {
    return tx.find(JoinKeyEntity, { order: { createdAt: 'ASC', id: 'ASC' }, take: 500 });
  }

  /** True: it is revoked now and was not before. */
  async revoke(tx: Tx, entity: typeof ApiKeyEntity | typeof JoinKeyEntity, id: string): Promise<boolean> {
    const done = await tx.update(entity, { id, revokedAt: IsNull() }, { revokedAt: () => 'now()' });
    return done.affected === 1;
  }

  exists(tx: Tx, entity: typeof ApiKeyEntity | typeof JoinKeyEntity, id: string): Promise<boolean> {
    return tx.existsBy(entity, { id });
  }

  /** Bootstrap: makes the row of this id hold this secret; true when that changed anything. */
  async putKey(
    tx: Tx,
    { id, name, role, hash }: Pick<ApiKeyEntity, 'id' | 'name' | 'role' | 'hash'>,
  ): Promise<boolean> {
    const rows = await tx.query(
      `insert into api_keys (id, name, role, hash, created_by) values ($1, $2, $3, $4, 'settings')
       on conflict (id) do update set hash = excluded.hash, revoked_at = null, created_at = now()
       where api_keys.hash <> excluded.hash returning id`,
      [id, name, role, hash],
    );
    return rows.length === 1;
  }

  async putJoinKey(tx: Tx, key: Pick<JoinKeyEntity, 'id' | 'name' | 'joins' | 'pool' | 'hash'>): Promise<boolean> {
    const rows = await tx.query(
      `insert into join_keys (id, name, joins, pool, hash, created_by) values ($1, $2, $3, $4, $5, 'settings')
       on conflict (id) do update set hash = excluded.hash, revoked_at = null, created_at = now()
       where join_keys.hash <> excluded.hash returning id`,
      [key.id, key.name, key.joins, key.pool, key.hash],
    );
    return rows.length === 1;
  }

  touch(tx: Tx, id: string): Promise<unknown> {
    return tx.query(
      `update api_keys set last_used_at = now()
       where id = $1 and (last_used_at is null or last_used_at < now() - interval '5 minutes')`,
      [id],
    );
  }

  /** Keys that may call endpoints now: every role may infer. */
  inferenceKeys(tx: Tx): Promise<InferenceKey[]> {
    return tx.query(
      `select id, hash, endpoints from api_keys
       where revoked_at is null and (expires_at is null or expires_at > now()) order by id`,
    );
  }

  /** Whether any key ran out within the last `withinMs`: the routing table has to be told. */
  async expiredWithin(tx: Tx, withinMs: number): Promise<boolean> {
    const [row] = await tx.query(
      `select exists(select 1 from api_keys where revoked_at is null
         and expires_at between now() - $1 * interval '1 millisecond' and now()) as any`,
      [withinMs],
    );
    return row.any;
  }
}
