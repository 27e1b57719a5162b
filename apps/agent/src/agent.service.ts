import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Health } from '@perch/platform';
import { BlobCache, RepositoryStore, SyncReconciler } from '@perch/sync';
import { ControlPlaneClient } from './control-plane.client.ts';
import { DesiredLoop } from './desired.loop.ts';
import { ReportLoop } from './report.loop.ts';
import { OutsideConnections } from './sync-setup.ts';

/** What is opened on disk before anything runs. */
@Injectable()
export class AgentDisk {
  constructor(
    private readonly cache: BlobCache,
    private readonly repository: RepositoryStore,
  ) {}

  async open(): Promise<void> {
    await this.cache.open();
    await this.repository.open();
  }
}

/** The loops. */
@Injectable()
export class AgentLoops {
  constructor(
    private readonly reconciler: SyncReconciler,
    private readonly desired: DesiredLoop,
    private readonly report: ReportLoop,
  ) {}

  async start(): Promise<void> {
    await this.desired.start();
    this.reconciler.start();
    this.report.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.desired.stop(), this.report.stop()]);
    await this.reconciler.stop();
  }

  /** Why the agent is not ready, or undefined. */
  unreadiness(): string | undefined {
    const { snapshot } = this.reconciler;
    if (!snapshot?.triton.live) return 'the model server does not answer';
    if (!this.desired.documents.accepted && !this.desired.documents.pending) return 'no document was received yet';
    return snapshot.inStep ? undefined : 'not in step with the desired document';
  }
}

/** Starts and stops the agent's parts in order. Triton and its models are left as they are. */
@Injectable()
export class AgentService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  constructor(
    private readonly health: Health,
    private readonly disk: AgentDisk,
    private readonly loops: AgentLoops,
    private readonly outside: OutsideConnections,
    private readonly client: ControlPlaneClient,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.disk.open();
    this.health.add('triton', () => this.loops.unreadiness());
    await this.loops.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.loops.stop();
    await this.outside.close();
    await this.client.close();
  }
}
