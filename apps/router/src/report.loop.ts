import { randomUUID } from 'node:crypto';
import { digestOf, errorCodeOf } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { ControlClient } from './control/control.client.ts';
import type { Enrolment } from './control/enrolment.ts';
import type { CountBook } from './count-book.ts';
import { mergeStates } from './report.decide.ts';
import type { RoutingTableSource } from './routing-table.source.ts';
import type { WorkerState } from './serving/serving-tables.ts';

const everyMs = 1_000;
/** Counts go with every second report, and so many versions at most: a busy router sends some 40 kB/s of them. */
const countsEvery = 2;
const mostCounts = 200;
const mostAtTheEnd = 20_000;

/** What there is to report. `collect` brings the counts of at most so many versions up to date. */
export interface Reported {
  states(): readonly WorkerState[];
  counts: CountBook;
  collect(limit: number): void;
}

/** Each second: what this router has acknowledged, what still runs, what it cannot serve. The body only when it changed. */
export class ReportLoop {
  private readonly client: ControlClient;
  private readonly enrolment: Enrolment;
  private readonly source: RoutingTableSource;
  private readonly reported: Reported;
  private readonly logger: Logger;
  private readonly bootId = randomUUID();
  private timer: NodeJS.Timeout | undefined;
  private acceptedHash = '';
  private failing = false;
  private turns = 0;
  private ending = false;
  /** A beat waits for its turn and will tell what is true by then. */
  private queued = false;
  private problemsSince: number | undefined;
  private current: Promise<void> = Promise.resolve();

  constructor(
    client: ControlClient,
    enrolment: Enrolment,
    source: RoutingTableSource,
    reported: Reported,
    logger: Logger,
  ) {
    this.client = client;
    this.enrolment = enrolment;
    this.source = source;
    this.reported = reported;
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
    this.ending = true;
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
    const report = mergeStates(this.reported.states());
    this.retryProblems(Object.keys(report.problems).length > 0);
    const hash = digestOf(report);
    const head = { bootId: this.bootId, hash };
    const told = this.takeCounts();
    try {
      const body = hash === this.acceptedHash ? head : { ...head, report };
      const first = await this.client.report(identity, told ? { ...body, stats: told.stats } : body);
      if (first.needReport) {
        await this.client.report(identity, { ...head, report });
        this.reported.counts.allAgain(); // it knew nothing of this boot
      }
      this.acceptedHash = hash;
      this.failing = false;
    } catch (error) {
      this.acceptedHash = '';
      if (told) this.reported.counts.again(told.keys);
      if (errorCodeOf(error) !== 'unauthenticated') throw error;
      await this.enrolment.renew(this.source.lineage);
    }
  }

  private takeCounts() {
    this.turns += 1;
    if (!this.ending && this.turns % countsEvery !== 0) return undefined;
    const limit = this.ending ? mostAtTheEnd : mostCounts;
    this.reported.collect(limit);
    return this.reported.counts.take(limit);
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
