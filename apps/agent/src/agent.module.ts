import { type DynamicModule, Module } from '@nestjs/common';
import { Health, LOGGER, type Logger, Metrics } from '@perch/platform';
import { DocumentStore } from '@perch/sync';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { AgentDisk, AgentLoops, AgentService } from './agent.service.ts';
import { ControlPlaneClient } from './control-plane.client.ts';
import { DesiredLoop } from './desired.loop.ts';
import { IdentityStore } from './identity.store.ts';
import { ObservedSource } from './observed.source.ts';
import { ReportLoop } from './report.loop.ts';
import { SessionService } from './session.service.ts';
import { syncProviders } from './sync-setup.ts';

/** What the program is given from outside. */
export interface Outside {
  config: AgentConfig;
  logger: Logger;
  metrics: Metrics;
  health: Health;
}

/** The whole agent: a list. */
@Module({})
export class AgentModule {
  static forRoot({ config, logger, metrics, health }: Outside): DynamicModule {
    const inData = (name: string) => `${config.PERCH_DATA_DIR}/${name}`;
    return {
      module: AgentModule,
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: LOGGER, useValue: logger },
        { provide: Metrics, useValue: metrics },
        { provide: Health, useValue: health },
        { provide: ControlPlaneClient, useFactory: () => new ControlPlaneClient(config.PERCH_CONTROL_URL) },
        { provide: IdentityStore, useFactory: () => new IdentityStore(inData('identity.json')) },
        { provide: DocumentStore, useFactory: () => new DocumentStore(inData('desired.json')) },
        SessionService,
        ...syncProviders,
        DesiredLoop,
        ObservedSource,
        ReportLoop,
        AgentDisk,
        AgentLoops,
        AgentService,
      ],
    };
  }
}
