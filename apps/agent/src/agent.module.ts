import { type DynamicModule, Module } from '@nestjs/common';
import { Health, LOGGER, type Logger, Metrics } from '@perch/platform';
import { DocumentStore, type PlannedCommand } from '@perch/sync';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { AgentGround, AgentLoops, AgentService } from './agent.service.ts';
import { ControlPlaneClient } from './control-plane.client.ts';
import { CureLoop } from './cure.loop.ts';
import { DesiredLoop } from './desired.loop.ts';
import { DrainController } from './drain.controller.ts';
import { DrainService } from './drain.service.ts';
import { IdentityStore } from './identity.store.ts';
import { LeavingService } from './leaving.service.ts';
import { ObservedSource } from './observed.source.ts';
import { PeerServer } from './peer.server.ts';
import { ReportLoop } from './report.loop.ts';
import { ServerSource } from './server.source.ts';
import { SessionService } from './session.service.ts';
import { SERVER_COMMAND, superviseProviders } from './supervise-setup.ts';
import { syncProviders } from './sync-setup.ts';

/** What the program is given from outside. */
export interface Outside {
  config: AgentConfig;
  logger: Logger;
  metrics: Metrics;
  health: Health;
  /** Triton's command where the agent is to be its parent. */
  command: PlannedCommand | null;
}

/** The whole agent: a list. */
@Module({})
export class AgentModule {
  static forRoot({ config, logger, metrics, health, command }: Outside): DynamicModule {
    const inData = (name: string) => `${config.PERCH_DATA_DIR}/${name}`;
    return {
      module: AgentModule,
      controllers: [DrainController],
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: LOGGER, useValue: logger },
        { provide: Metrics, useValue: metrics },
        { provide: Health, useValue: health },
        { provide: SERVER_COMMAND, useValue: command },
        { provide: ControlPlaneClient, useFactory: () => new ControlPlaneClient(config.PERCH_CONTROL_URL) },
        { provide: IdentityStore, useFactory: () => new IdentityStore(inData('identity.json')) },
        { provide: DocumentStore, useFactory: () => new DocumentStore(inData('desired.json')) },
        SessionService,
        ...syncProviders,
        ...superviseProviders,
        LeavingService,
        ServerSource,
        PeerServer,
        DesiredLoop,
        ObservedSource,
        ReportLoop,
        DrainService,
        CureLoop,
        AgentGround,
        AgentLoops,
        AgentService,
      ],
    };
  }
}
