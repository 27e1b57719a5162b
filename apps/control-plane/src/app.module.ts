import { type DynamicModule, Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { AccessModule, WEBHOOK_OPTIONS, type WebhookOptions } from '@perch/access';
import { Health, LOGGER, type Logger, Metrics } from '@perch/platform';
import { DatabaseModule } from '@perch/platform/database';
import { EventService } from './admin-api/event.service.ts';
import { IdempotencyInterceptor } from './admin-api/idempotency.interceptor.ts';
import { KeyGuard } from './admin-api/key.guard.ts';
import { ProblemFilter } from './admin-api/problem.filter.ts';
import { SchemaPipe } from './admin-api/schema.pipe.ts';
import { ConnectionService } from './connection.service.ts';
import { CONFIG, type ControlPlaneConfig, databaseOptionsOf } from './control-plane.config.ts';
import { SweepLoop } from './loops/sweep.loop.ts';
import { WebhookLoop } from './loops/webhook.loop.ts';
import { controllers, partModules, partProviders } from './parts.ts';

/** What the program is given from outside. */
export interface Outside {
  config: ControlPlaneConfig;
  logger: Logger;
  metrics: Metrics;
  health: Health;
  /** Where clients reach the signed URLs of the folder store; asked each time one is made. */
  publicUrl: () => string;
}

/** What every module may ask for: settings, log, metrics, health. */
@Global()
@Module({})
export class OutsideModule {
  static forRoot({ config, logger, metrics, health }: Outside): DynamicModule {
    const webhooks: WebhookOptions = { reach: config.PERCH_WEBHOOK_REACH };
    const providers = [
      { provide: CONFIG, useValue: config },
      { provide: WEBHOOK_OPTIONS, useValue: webhooks },
      { provide: LOGGER, useValue: logger },
      { provide: Metrics, useValue: metrics },
      { provide: Health, useValue: health },
    ];
    return { module: OutsideModule, providers, exports: providers };
  }
}

/** The whole control plane: a list. */
@Module({})
export class AppModule {
  static forRoot(outside: Outside): DynamicModule {
    return {
      module: AppModule,
      imports: [
        OutsideModule.forRoot(outside),
        DatabaseModule.forRoot(databaseOptionsOf(outside.config)),
        AccessModule,
        ...partModules(outside.config, outside.publicUrl),
      ],
      controllers,
      providers: [
        ConnectionService,
        EventService,
        SweepLoop,
        WebhookLoop,
        ...partProviders,
        { provide: APP_GUARD, useClass: KeyGuard },
        { provide: APP_PIPE, useClass: SchemaPipe },
        { provide: APP_INTERCEPTOR, useClass: IdempotencyInterceptor },
        { provide: APP_FILTER, useClass: ProblemFilter },
      ],
    };
  }
}
