import { Global, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LOGGER, Metrics, silentLogger } from '@perch/platform';
import { DatabaseModule, LoopRunner, migrate, migrateDown, Transactions, WorkStore } from '@perch/platform/database';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { migrations } from '../../migrations/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

@Global()
@Module({
  providers: [
    { provide: LOGGER, useValue: silentLogger },
    { provide: Metrics, useFactory: () => new Metrics() },
  ],
  exports: [LOGGER, Metrics],
})
class ProgramModule {}

describe('platform database', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  const open = async () => {
    const module = await Test.createTestingModule({
      imports: [ProgramModule, DatabaseModule.forRoot(database)],
    }).compile();
    return {
      module,
      work: module.get(WorkStore),
      transactions: module.get(Transactions),
      loops: module.get(LoopRunner),
    };
  };

  it('migrates up from nothing, all the way down, and up again', async () => {
    const empty = await createTestDatabase({ migrated: false });
    expect(await migrate(empty)).toHaveLength(migrations.length);
    expect(await migrate(empty)).toEqual([]);
    for (let n = 0; n < migrations.length; n += 1) await migrateDown(empty);
    const left = await empty.query(
      `select tablename from pg_tables where schemaname = 'public' and tablename <> 'migrations'`,
    );
    expect(left).toEqual([]);
    expect(await migrate(empty)).toHaveLength(migrations.length);
    await empty.drop();
  });

  it('migrates once when many processes start together', async () => {
    const empty = await createTestDatabase({ migrated: false });
    const done = await Promise.all([migrate(empty), migrate(empty), migrate(empty)]);
    expect(done.map((names) => names.length).sort()).toEqual([0, 0, migrations.length]);
    await empty.drop();
  });

  it.each(['on', 'off'])(
    'gives out no more keys than asked for, whatever plan Postgres takes (hashing %s)',
    async (hashing) => {
      for (const way of ['hashjoin', 'mergejoin', 'hashagg', 'sort', 'material'])
        await database.query(
          `alter database ${new URL(database.url).pathname.slice(1)} set enable_${way} = ${hashing}`,
        );
      const { module, work } = await open();
      await work.enqueueAll(
        null,
        `many-${hashing}`,
        Array.from({ length: 40 }, (_, n) => `k${n}`),
      );
      await database.query('analyze work');
      expect(await work.claim(`many-${hashing}`, 1, 5_000)).toHaveLength(1);
      expect(await work.claim(`many-${hashing}`, 3, 5_000)).toHaveLength(3);
      await module.close();
    },
  );

  it('gives a key to one worker, and gives it out again when it was asked for meanwhile', async () => {
    const { module, work } = await open();
    await work.enqueue(null, 'a', 'k');
    const [first, second] = await Promise.all([work.claim('a', 5, 5_000), work.claim('a', 5, 5_000)]);
    const claims = [...first, ...second];
    expect(claims).toHaveLength(1);
    await work.enqueue(null, 'a', 'k');
    expect(await work.claim('a', 5, 5_000)).toEqual([]);
    await work.finish(claims[0]!, null);
    expect(await work.claim('a', 5, 5_000)).toHaveLength(1);
    await module.close();
  });

  it('lets a worker whose lease ran out change nothing', async () => {
    const { module, work } = await open();
    await work.enqueue(null, 'b', 'k');
    const [late] = await work.claim('b', 1, 1);
    const again = await vi.waitUntil(async () => (await work.claim('b', 1, 5_000))[0], { timeout: 5_000 });
    expect(await work.renew(late!, 5_000)).toBe(false);
    await work.finish(late!, null);
    expect(await work.renew(again, 5_000)).toBe(true);
    expect(again.attempts).toBe(2);
    await module.close();
  });

  it('shows work only with the transaction that asked for it', async () => {
    const { module, work, transactions } = await open();
    const failed = transactions.run(async (tx) => {
      await work.enqueue(tx, 'c', 'k');
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    expect(await work.claim('c', 1, 1_000)).toEqual([]);
    await module.close();
  });

  it('has a listener on every pooled connection, also between two owners: an unheard error would end the process', async () => {
    const { module } = await open();
    const pool = (module.get(DataSource).driver as unknown as { master: Pool }).master;
    const client = await pool.connect(); // the pool has taken its own listener away, and nobody has added another
    expect(client.listenerCount('error')).toBeGreaterThan(0);
    client.release();
    await module.close();
  });

  it('runs a loop on a wake-up at once, retries a failure, and again after the time asked for', async () => {
    const { module, work, loops } = await open();
    const seen: string[] = [];
    loops.register({
      kind: 'd',
      reconcile: async (key) => {
        seen.push(key);
        if (seen.length === 1) throw new Error('first try fails');
        return seen.length < 4 ? { again: 'after', ms: 10 } : { again: 'on-change' };
      },
    });
    await module.init();
    await work.enqueue(null, 'd', 'x');
    await vi.waitFor(() => expect(seen).toEqual(['x', 'x', 'x', 'x']), { timeout: 5_000 });
    await vi.waitFor(async () => expect(await database.query(`select 1 from work where kind = 'd'`)).toEqual([]));
    await module.close();
  });
});
