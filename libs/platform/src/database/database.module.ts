import { type DynamicModule, Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Metrics } from '../metrics.ts';
import { DATABASE_OPTIONS, type DatabaseOptions } from './options.ts';
import { pooledClient, type QueryCounts } from './pooled-client.ts';
import { Transactions } from './transactions.ts';
import { Wakeups } from './wakeup.source.ts';
import { LoopRunner } from './work.loop.ts';
import { WorkStore } from './work.store.ts';

/**
 * Postgres for the whole program; feature modules add their entities with `TypeOrmModule.forFeature`. Wants `Metrics`
 * and `LOGGER` from a global module of the program.
 */
@Global()
@Module({})
export class DatabaseModule {
  static forRoot(options: DatabaseOptions): DynamicModule {
    const counts: QueryCounts = new Map();
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
        Client: pooledClient(counts),
        keepAlive: true,
        statement_timeout: 30_000,
        ...(options.schema ? { options: `-c search_path=${options.schema}` } : {}),
      },
    });
    const provided = [{ provide: DATABASE_OPTIONS, useValue: options }, Transactions, WorkStore, Wakeups, LoopRunner];
    const meter = { provide: QUERY_COUNTS, inject: [Metrics], useFactory: (metrics: Metrics) => show(metrics, counts) };
    return {
      module: DatabaseModule,
      imports: [typeorm],
      providers: [...provided, meter],
      exports: [...provided, typeorm],
    };
  }
}

const QUERY_COUNTS = Symbol('query counts');

function show(metrics: Metrics, counts: QueryCounts): QueryCounts {
  metrics.collected('counter', 'perch_database_queries_total', 'Statements sent to Postgres.', ['statement'], () =>
    [...counts].map(([statement, value]) => ({ labels: { statement }, value })),
  );
  return counts;
}
