import { Injectable } from '@nestjs/common';
import { pause } from '@perch/platform';
import { isDrained, SyncReconciler } from '@perch/sync';
import { DesiredLoop } from './desired.loop.ts';
import { LeavingService } from './leaving.service.ts';
import { ReportLoop } from './report.loop.ts';

export interface DrainOutcome {
  drained: boolean;
  /** Models still served here. */
  models: string[];
}

const lookEveryMs = 100;

/** Gets this server's work done elsewhere before the program ends. */
@Injectable()
export class DrainService {
  constructor(
    private readonly leaving: LeavingService,
    private readonly desired: DesiredLoop,
    private readonly reconciler: SyncReconciler,
    private readonly report: ReportLoop,
  ) {}

  /**
   * Asks for a drain and waits until nothing is desired here any more, `limitMs` at most. It goes on after the limit;
   * only a new process takes it back.
   */
  async drain(limitMs: number, reason: string): Promise<DrainOutcome> {
    this.leaving.ask('stopping', reason);
    const until = Date.now() + limitMs;
    while (!this.isDone && Date.now() < until) await pause(Math.min(lookEveryMs, Math.max(1, until - Date.now())));
    const models = Object.entries(this.reconciler.snapshot?.models ?? {});
    return { drained: this.isDone, models: models.filter(([, { state }]) => state === 'ready').map(([name]) => name) };
  }

  /** Whether this server's work is done elsewhere: the control plane says so, or wants nothing of it and all is unloaded. */
  get isDone(): boolean {
    if (this.report.isReleased) return true;
    // Before the control plane has heard of it, an empty document means nothing.
    if (!this.report.hasTold(({ leaving }) => leaving === true)) return false;
    const states = Object.values(this.reconciler.snapshot?.models ?? {}).map(({ state }) => state);
    return isDrained(this.desired.documents, states);
  }
}
