import { Inject, Injectable } from '@nestjs/common';
import { pause } from '@perch/platform';
import { decideCure, type Supervisor, SyncReconciler, type SyncSnapshot } from '@perch/sync';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { DrainService } from './drain.service.ts';
import { LeavingService } from './leaving.service.ts';
import { SUPERVISOR } from './server.source.ts';

const lookEveryMs = 500;
const namesIn = ({ models }: SyncSnapshot, state: string) =>
  Object.keys(models).filter((name) => models[name]!.state === state);

/** Gets a supervised server rid of a model that is stuck in LOADING: drained first, then restarted without that model. */
@Injectable()
export class CureLoop {
  private readonly stopped = new AbortController();
  private asked: { names: string[]; atMs: number } | undefined;
  private loop: Promise<void> | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: AgentConfig,
    @Inject(SUPERVISOR) private readonly supervisor: Supervisor | null,
    private readonly leaving: LeavingService,
    private readonly drain: DrainService,
    private readonly reconciler: SyncReconciler,
  ) {}

  start(): void {
    if (this.supervisor) this.loop = this.run(this.supervisor);
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.loop;
  }

  private async run(supervisor: Supervisor): Promise<void> {
    const { signal } = this.stopped;
    for (; !signal.aborted; await pause(lookEveryMs, signal)) {
      const { snapshot } = this.reconciler;
      if (snapshot) await this.look(snapshot, supervisor);
    }
  }

  private async look(snapshot: SyncSnapshot, supervisor: Supervisor): Promise<void> {
    const stuck = namesIn(snapshot, 'stuck');
    const verdict = decideCure({
      stuck,
      askedAtMs: this.asked?.atMs,
      serving: namesIn(snapshot, 'ready').length + namesIn(snapshot, 'warming').length,
      drained: this.drain.isDone,
      nowMs: Date.now(),
      patienceMs: this.config.PERCH_STUCK_PATIENCE_MS,
    });
    if (verdict === 'none' && this.asked) this.end((names) => this.reconciler.forgiveStuck(names));
    if (verdict === 'ask') this.ask(stuck);
    if (verdict === 'restart') {
      this.reconciler.giveUpStuck(stuck, this.reasonFor());
      await supervisor.restart(`stuck in LOADING: ${stuck.join(', ')}`);
      this.end(() => undefined);
    }
  }

  private ask(names: string[]): void {
    this.asked = { names, atMs: Date.now() };
    this.reconciler.holdLoads(true);
    // Before the drain takes the model out of the document, and its digest with it.
    this.reconciler.giveUpStuck(names, this.reasonFor());
    this.leaving.ask('stuck', `stuck in LOADING, the server has to be restarted: ${names.join(', ')}`);
  }

  private end(then: (names: string[]) => void): void {
    if (this.asked) then(this.asked.names);
    this.asked = undefined;
    this.reconciler.holdLoads(false);
    this.leaving.withdraw('stuck');
  }

  private reasonFor(): string {
    const seconds = Math.round(this.config.PERCH_LOAD_DEADLINE_MS / 1_000);
    return `stuck: it was LOADING for more than ${seconds} s (PERCH_LOAD_DEADLINE_MS), and its server is restarted to be rid of it; the model is tried again with other settings or as a new version`;
  }
}
