import { randomUUID } from 'node:crypto';
import { digestOf, errorCodeOf, type RouterReport } from '@perch/contracts';
import { type Logger, pause } from '@perch/platform';
import type { ControlClient } from './control/control.client.ts';
import type { Enrolment } from './control/enrolment.ts';
import type { CountBook } from './count-book.ts';
import type { EvidenceLedger } from './evidence-ledger.ts';
import { mergeStates } from './report.decide.ts';
import type { RoutingTableSource } from './routing-table.source.ts';
import { monotonicMs } from './serving/evidence-lease.ts';
import type { WorkerState } from './serving/serving-tables.ts';

const everyMs = 1_000;
/** Evidence goes twice as often where there is any: what a killed router counted since is lost. */
const tellMs = everyMs / 2;
/** Counts go with every second report, and so many versions at most: a busy router sends some 40 kB/s of them. */
const countsEvery = 2;
const mostCounts = 200;
const mostAtTheEnd = 20_000;
/** What the last reports do not bring is lost. */
const triesAtTheEnd = 4;
const endPauseMs = 300;

/** What there is to report. `collect` brings the counts of at most so many versions up to date. */
export interface Reported {
  states(): readonly WorkerState[];
  counts: CountBook;
  collect(limit: number): void;
  evidence: EvidenceLedger;
  /** Brings the evidence of every worker up to date; resolves soon even when one does not answer. `last`: requests have ended. */
  gather(last: boolean): Promise<void>;
  /** A report that left at this time (`monotonicMs`) was accepted. */
  accepted(atMs: number): void;
}

/**
 * Each second: what this router has acknowledged, what still runs, what it cannot serve. The body only when it changed.
 * Between two of them evidence alone, if it has changed.
 */
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
  private ticks = 0;
  private turns = 0;
  /** The last report did not bring all there was. */
  private evidenceLeft = false;
  private ending = false;
  /** A whole report waits for its turn and will tell what is true by then. */
  private queued = false;
  /** Beats that wait or are under way. */
  private beats = 0;
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
    this.timer = setInterval(() => this.tick(), tellMs);
  }

  private tick(): void {
    this.ticks += 1;
    const isWhole = this.ticks % (everyMs / tellMs) === 0;
    if (isWhole ? !this.queued : this.beats === 0) void this.beat(isWhole);
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
    for (let tries = 1; tries <= triesAtTheEnd; tries += 1) {
      await this.beat();
      if (!this.failing && !this.evidenceLeft) return;
      if (this.failing) await pause(endPauseMs);
    }
  }

  /** One report; a slow one is not overtaken by the next. Of one that is not whole only news of evidence is sent. */
  private beat(isWhole = true): Promise<void> {
    if (isWhole) this.queued = true;
    this.beats += 1;
    this.current = this.current
      .then(() => this.send(isWhole))
      .catch((error) => {
        if (!this.failing) this.logger.warn('report not taken', { error });
        this.failing = true;
      })
      .finally(() => {
        this.beats -= 1;
      });
    return this.current;
  }

  private async send(isWhole: boolean): Promise<void> {
    if (isWhole) this.queued = false;
    this.evidenceLeft = false;
    const { identity } = this.enrolment;
    if (!identity) return;
    await this.reported.gather(this.ending);
    if (!isWhole && !this.reported.evidence.hasNews) return;
    const report = mergeStates(this.reported.states());
    this.retryProblems(Object.keys(report.problems).length > 0);
    const hash = digestOf(report);
    const head = { bootId: this.bootId, hash };
    const told = isWhole ? this.takeCounts() : undefined;
    const evidence = this.reported.evidence.take();
    const sentAtMs = monotonicMs();
    try {
      const body: RouterReport = hash === this.acceptedHash ? head : { ...head, report };
      if (told) body.stats = told.stats;
      if (evidence) body.evidence = evidence.evidence;
      const first = await this.client.report(identity, body);
      if (first.needReport) {
        await this.client.report(identity, { ...head, report });
        this.reported.counts.allAgain(); // it knew nothing of this boot
        this.reported.evidence.allAgain();
      }
      this.acceptedHash = hash;
      this.failing = false;
      this.evidenceLeft = this.reported.evidence.hasNews;
      this.reported.accepted(sentAtMs);
    } catch (error) {
      this.acceptedHash = '';
      if (told) this.reported.counts.again(told.keys);
      if (evidence) this.reported.evidence.again(evidence);
      this.evidenceLeft = evidence !== undefined;
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
