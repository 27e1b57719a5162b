import { type DynamicModule, Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { LOGGER, type Logger, Metrics } from '@perch/platform';
import type { ServingHost } from '@perch/triton/server';
import type { EngineConfig } from './engine.config.ts';
import { FailureCounts, registerMetrics } from './engine.observe.ts';
import { ModelService } from './models/model.service.ts';
import { RepositoryService } from './repository/repository.service.ts';
import type { OpenSession } from './session/onnx-session.ts';
import { openSessionThread } from './session/session.client.ts';

export const ENGINE_CONFIG = Symbol('engine config');
export const OPEN_SESSION = Symbol('open session');

/** The Triton release whose protocol and rules this engine follows. */
const protocolVersion = '2.51.0';
const extensions = [
  'model_repository',
  'schedule_policy',
  'model_configuration',
  'binary_tensor_data',
  'parameters',
  'statistics',
];

/** All of the engine behind its two ports. */
@Injectable()
export class Engine implements ServingHost, OnApplicationShutdown {
  readonly models: ModelService;
  readonly repository: RepositoryService;
  private readonly id: string;

  constructor(
    @Inject(ENGINE_CONFIG) config: EngineConfig,
    @Inject(LOGGER) logger: Logger,
    @Inject(OPEN_SESSION) openSession: OpenSession,
    metrics: Metrics,
  ) {
    const failures = new FailureCounts();
    this.id = config.PERCH_ENGINE_ID;
    this.repository = new RepositoryService({
      folder: config.PERCH_ENGINE_REPOSITORY,
      threads: config.PERCH_ENGINE_THREADS,
      openSession,
      logger,
      onFailure: (model, version, reason) => failures.add(model, version, reason),
    });
    this.models = new ModelService(this.repository);
    registerMetrics(metrics, this.repository, failures);
  }

  server() {
    return { name: this.id, version: protocolVersion, extensions, ready: true };
  }

  async onApplicationShutdown(): Promise<void> {
    this.models.stop();
    await this.repository.close();
  }
}

@Module({})
export class EngineModule {
  static forRoot(config: EngineConfig, logger: Logger, openSession: OpenSession = openSessionThread): DynamicModule {
    return {
      module: EngineModule,
      providers: [
        { provide: ENGINE_CONFIG, useValue: config },
        { provide: LOGGER, useValue: logger },
        { provide: OPEN_SESSION, useValue: openSession },
        { provide: Metrics, useValue: new Metrics({ processMetrics: true }) },
        Engine,
      ],
      exports: [Engine, Metrics],
    };
  }
}
