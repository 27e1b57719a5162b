import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Health } from '@perch/platform';
import { BlobCache, FolderLock, RepositoryStore, type Supervisor, SyncReconciler } from '@perch/sync';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { CureLoop } from './cure.loop.ts';
import { DesiredLoop } from './desired.loop.ts';
import { DrainService } from './drain.service.ts';
import { ReportLoop } from './report.loop.ts';
import { ServerSource, SUPERVISOR } from './server.source.ts';
import { OutsideConnections } from './sync-setup.ts';

/** What is opened before any loop runs: the folders, which are this agent's alone, and Triton where it is our child. */
@Injectable()
export class AgentGround {
  private readonly lock: FolderLock;

  constructor(
    @Inject(CONFIG) config: AgentConfig,
    @Inject(SUPERVISOR) private readonly supervisor: Supervisor | null,
    private readonly cache: BlobCache,
    private readonly repository: RepositoryStore,
    private readonly outside: OutsideConnections,
  ) {
    this.lock = new FolderLock(config.PERCH_DATA_DIR);
  }

  async open(): Promise<void> {
    await this.lock.take();
    await this.cache.open();
    await this.repository.open();
    await this.supervisor?.start();
  }

  async close(): Promise<void> {
    await this.supervisor?.stop();
    await this.outside.close();
    await this.lock.release();
  }
}

/** The loops. */
@Injectable()
export class AgentLoops {
  constructor(
    private readonly reconciler: SyncReconciler,
    private readonly desired: DesiredLoop,
    private readonly report: ReportLoop,
    private readonly server: ServerSource,
    private readonly cure: CureLoop,
  ) {}

  async start(): Promise<void> {
    await this.desired.start();
    this.reconciler.start();
    await this.server.start();
    this.report.start();
    this.cure.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.desired.stop(), this.report.stop(), this.server.stop(), this.cure.stop()]);
    await this.reconciler.stop();
  }

  /** Why the agent is not ready, or undefined. */
  unreadiness(): string | undefined {
    const { snapshot } = this.reconciler;
    if (!snapshot?.triton.live) return this.server.standstill ?? 'the model server does not answer';
    if (!this.desired.documents.accepted && !this.desired.documents.pending) return 'no document was received yet';
    return snapshot.inStep ? undefined : 'not in step with the desired document';
  }
}

/**
 * Starts and stops the agent's parts in order. A Triton that is not its child is left as it is, with its models; its
 * child ends with it, drained first where PERCH_DRAIN_TIMEOUT_MS gives time for that.
 */
@Injectable()
export class AgentService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  constructor(
    @Inject(CONFIG) private readonly config: AgentConfig,
    private readonly health: Health,
    private readonly ground: AgentGround,
    private readonly loops: AgentLoops,
    private readonly drain: DrainService,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.ground.open();
    this.health.add('triton', () => this.loops.unreadiness());
    await this.loops.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    const limitMs = this.config.PERCH_DRAIN_TIMEOUT_MS;
    if (limitMs > 0) await this.drain.drain(limitMs, 'its agent was told to end');
    await this.loops.stop();
    await this.ground.close();
  }
}
