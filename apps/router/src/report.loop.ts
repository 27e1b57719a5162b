import { randomUUID } from 'node:crypto';
import { digestOf, errorCodeOf } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { ControlClient } from './control/control.client.ts';
import type { Enrolment } from './control/enrolment.ts';
import { mergeStates } from './report.decide.ts';
import type { RoutingTableSource } from './routing-table.source.ts';
import type { WorkerState } from './serving/serving-tables.ts';

const everyMs = 1_000;

/** Each second: what this router has acknowledged, what still runs, what it cannot serve. The body only when it changed. */
export class ReportLoop {
  private readonly client: ControlClient;
  private readonly enrolment: Enrolment;
  private readonly source: RoutingTableSource;
  private readonly states: () => readonly WorkerState[];
  private readonly logger: Logger;
  private readonly bootId = randomUUID();
  private timer: NodeJS.Timeout | undefined;
  private acceptedHash = '';
  private failing = false;
  /** A beat waits for its turn and will tell what is true by then. */
  private queued = false;
  private problemsSince: number | undefined;
  private current: Promise<void> = Promise.resolve();

  constructor(
    client: ControlClient,
    enrolment: Enrolment,
    source: RoutingTableSource,
    states: () => readonly WorkerState[],
    logger: Logger,
  ) {
    this.client = client;
    this.enrolment = enrolment;
    this.source = source;
    this.states = states;
    this.logger = logger;
  }

  start(): void {
    this.timer = setInterval(() => {
      void this.beat();
    }, everyMs);
  }

  /** Something changed that others wait for: says so at once, and not only with the next beat. */
  soon(): void {
    if (this.timer && !this.queued) void this.beat();
  }

  /** Ends with one last report, so that a drained router leaves nothing behind. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.current;
    await this.beat();
  }

  /** One report; a slow one is not overtaken by the next. */
  private beat(): Promise<void> {
    this.queued = true;
    this.current = this.current
      .then(() => this.send())
      .catch((error) => {
        if (!this.failing) this.logger.warn('report not taken', { error });
        this.failing = true;
      });
    return this.current;
  }

  private async send(): Promise<void> {
    this.queued = false;
    const { identity } = this.enrolment;
    if (!identity) return;
    const report = mergeStates(this.states());
    this.retryProblems(Object.keys(report.problems).length > 0);
    const hash = digestOf(report);
    const head = { bootId: this.bootId, hash };
    try {
      const first = await this.client.report(identity, hash === this.acceptedHash ? head : { ...head, report });
      if (first.needReport) await this.client.report(identity, { ...head, report });
      this.acceptedHash = hash;
      this.failing = false;
    } catch (error) {
      this.acceptedHash = '';
      if (errorCodeOf(error) !== 'unauthenticated') throw error;
      await this.enrolment.renew(this.source.lineage);
    }
  }

  private retryProblems(any: boolean): void {
    const now = performance.now();
    if (!any) this.problemsSince = undefined;
    else if (this.problemsSince === undefined) this.problemsSince = now;
    else if (now - this.problemsSince >= this.source.problemRetryMs) {
      this.problemsSince = now;
      void this.source.again();
    }
  }
}
