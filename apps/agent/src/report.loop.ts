import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { digestOf, type ObservedServer } from '@perch/contracts';
import { LOGGER, type Logger, pause } from '@perch/platform';
import { ControlPlaneClient } from './control-plane.client.ts';
import { DesiredLoop } from './desired.loop.ts';
import { ObservedSource } from './observed.source.ts';
import { isUrgent, planReport, type Taken } from './report.plan.ts';
import { SessionService } from './session.service.ts';

const everyMs = 2_000;
const logEvery = 30;
/** Changes that come together are told together; the more a report holds, the more of them. */
const gatherMs = 10;
const gatherMsPerModel = 0.5;
const mostGatherMs = 500;
/** What is mere progress waits this long for something that matters. */
const progressMs = 300;
/** After a start, models that Triton serves prove themselves again; a report in between would take them out of service. */
const provingMs = 5_000;

/** Tells the control plane what is observed: a heartbeat with the state's hash, the state itself when it changed. */
@Injectable()
export class ReportLoop {
  private readonly bootId = randomUUID();
  private readonly stopped = new AbortController();
  private turn = new AbortController();
  /** Undefined after a failure: the next report is a whole one. */
  private told: Taken | undefined;
  private taken: ObservedServer | undefined;
  private released = false;
  private startedAt = 0;
  private failures = 0;
  private modelCount = 0;
  private loop: Promise<void> | undefined;

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly client: ControlPlaneClient,
    private readonly session: SessionService,
    private readonly desired: DesiredLoop,
    private readonly observed: ObservedSource,
  ) {}

  start(): void {
    this.startedAt = Date.now();
    this.observed.onChange(() => this.turn.abort());
    this.desired.onChange(() => this.turn.abort());
    this.loop = this.run();
  }

  /** The control plane says that nothing is served from here any more. */
  get isReleased(): boolean {
    return this.released;
  }

  /** Whether the newest state that the control plane took has it. */
  hasTold(what: (observed: ObservedServer) => boolean): boolean {
    return this.taken !== undefined && what(this.taken);
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    this.turn.abort();
    await this.loop;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopped;
    while (!signal.aborted) {
      this.turn = new AbortController();
      await this.reportOnce();
      await pause(everyMs, AbortSignal.any([this.turn.signal, signal]));
      await pause(Math.min(mostGatherMs, gatherMs + this.modelCount * gatherMsPerModel), signal);
      if (!signal.aborted) await this.gatherProgress();
    }
  }

  /** Steps on the way to ready are told together, until one comes that somebody waits for. */
  private async gatherProgress(): Promise<void> {
    const { signal } = this.stopped;
    const until = performance.now() + progressMs;
    for (let left = progressMs; left > 0 && !signal.aborted; left = until - performance.now()) {
      this.turn = new AbortController();
      const observed = await this.observed.read(this.desired.documents).catch(() => undefined);
      if (!observed || this.told?.hash === digestOf(observed) || isUrgent(this.taken, observed)) return;
      await pause(left, AbortSignal.any([this.turn.signal, signal]));
    }
  }

  private async reportOnce(): Promise<void> {
    try {
      const observed = await this.observed.read(this.desired.documents);
      if (!observed || this.isProving(observed)) return;
      this.modelCount = Object.keys(observed.models).length;
      const now = { hash: digestOf(observed), observed };
      const told = { bootId: this.bootId, hash: now.hash, address: this.session.address };
      const send = (what: ReturnType<typeof planReport>) =>
        this.session.as((who) => this.client.report(who, { ...told, ...what }));
      let answer = await send(planReport(this.told, now));
      if (answer.needReport) answer = await send({ observed });
      // Only what was said with our wish to leave in hand is about that wish.
      this.released = observed.leaving === true && answer.drained === true;
      this.told = now;
      this.taken = observed;
      this.failures = 0;
    } catch (error) {
      this.told = undefined;
      this.failures += 1;
      if (this.failures % logEvery === 1) this.logger.warn('report was not taken', { error, failures: this.failures });
    }
  }

  private isProving({ models }: ObservedServer): boolean {
    if (this.told !== undefined || Date.now() - this.startedAt > provingMs) return false;
    return Object.values(models).some(({ state }) => state === 'warming');
  }
}
