import { type DynamicModule, Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import pg from 'pg';
import { DATABASE_OPTIONS, type DatabaseOptions } from './options.ts';
import { Transactions } from './transactions.ts';
import { Wakeups } from './wakeup.source.ts';
import { LoopRunner } from './work.loop.ts';
import { WorkStore } from './work.store.ts';

/**
 * A connection cut between two owners (the pool, a query runner) tells nobody, and an error that nobody hears ends the
 * process. Whoever waits for a query is told by that query, and the pool drops the client by itself.
 */
class PooledClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
  }
}

/**
 * Postgres for the whole program; feature modules add their entities with `TypeOrmModule.forFeature`. Wants `Metrics`
 * and `LOGGER` from a global module of the program.
 */
@Global()
@Module({})
export class DatabaseModule {
  static forRoot(options: DatabaseOptions): DynamicModule {
    const typeorm = TypeOrmModule.forRoot({
      type: 'postgres',
      url: options.url,
      schema: options.schema,
      autoLoadEntities: true,
      synchronize: false,
      migrationsRun: false,
      manualInitialization: options.connectLater ?? false,
      migrations: options.migrations as never,
      poolSize: options.poolSize ?? 20,
      connectTimeoutMS: 5_000,
      retryAttempts: 20,
      retryDelay: 500,
      extra: {
        Client: PooledClient,
        keepAlive: true,
        statement_timeout: 30_000,
        ...(options.schema ? { options: `-c search_path=${options.schema}` } : {}),
      },
    });
    const provided = [{ provide: DATABASE_OPTIONS, useValue: options }, Transactions, WorkStore, Wakeups, LoopRunner];
    return { module: DatabaseModule, imports: [typeorm], providers: provided, exports: [...provided, typeorm] };
  }
}
