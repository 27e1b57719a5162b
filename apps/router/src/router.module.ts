import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { HttpServer } from './http1/index.ts';
import { Serving } from './serving/serving.ts';

export const CONTROL = Symbol('control side');

export interface Stopping {
  stop(): Promise<void>;
}

/** Answers everything in hand before the process lets go; less than the program's own grace. */
const drainMs = 25_000;

/** Stops in order: no new requests, those in hand answered, the control plane told, connections to the model servers closed. */
@Injectable()
export class RouterShutdown implements BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly server: HttpServer;
  private readonly serving: Serving;
  private readonly control: Stopping;

  constructor(server: HttpServer, serving: Serving, @Inject(CONTROL) control: Stopping) {
    this.server = server;
    this.serving = serving;
    this.control = control;
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.server.close(drainMs);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.control.stop();
    await this.serving.close();
  }
}

/** The parts of one serving process. `control`: what follows the control plane here, or nothing in a worker. */
@Module({})
export class RouterModule {
  static forRoot(server: HttpServer, serving: Serving, control: Stopping): DynamicModule {
    return {
      module: RouterModule,
      providers: [
        { provide: HttpServer, useValue: server },
        { provide: Serving, useValue: serving },
        { provide: CONTROL, useValue: control },
        RouterShutdown,
      ],
    };
  }
}
