import { AppError, errorCodeOf, type RoutingTable } from '@perch/contracts';
import { backoffMs, type Logger, pause } from '@perch/platform';
import type { ControlClient } from './control/control.client.ts';
import type { Enrolment } from './control/enrolment.ts';
import type { FileStore } from './control/file.store.ts';
import { decideEffective, type EffectiveTable } from './table/effective-table.decide.ts';
import { Slice } from './table/slice.ts';
import type { TableStore } from './table/table.store.ts';
import { readTableAnswer, WrongBase } from './table/table-answer.ts';

export interface SourceParts {
  client: ControlClient;
  enrolment: Enrolment;
  files: FileStore;
  store: TableStore;
  logger: Logger;
}

/** Hands a table on to whoever serves; resolves when it is served, or at least on its way. */
export type Deliver = (effective: EffectiveTable) => Promise<void>;

const retryFirstMs = 200;
const retryMaxMs = 5_000;
const problemRetryMs = 5_000;

/**
 * Follows the control plane's routing table: starts from the last good one on disk, polls, validates, decides what is
 * held, fetches files, saves, hands on. Whatever fails here, the table in force stays in force.
 */
export class RoutingTableSource {
  /** The table received last, which the next patch builds on. */
  private accepted: RoutingTable | undefined;
  /** The last one whose removals were not held. */
  private trusted: RoutingTable | undefined;
  private effective: EffectiveTable | undefined;
  /** When the control plane was last heard, by the wall clock; from disk: when the table was published. */
  heardAt = 0;
  private readonly parts: SourceParts;
  private readonly deliver: Deliver;
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(parts: SourceParts, deliver: Deliver) {
    this.parts = parts;
    this.deliver = deliver;
  }

  get lineage(): string | null {
    return this.trusted?.lineage || null;
  }

  /** Resolves when the table on disk, if any, is served; polling goes on by itself. */
  async start(): Promise<void> {
    await this.startFromDisk();
    this.running = this.follow();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** Some processing did not load, perhaps for want of a file: fetches again and hands the same table on. */
  async again(): Promise<void> {
    const { effective } = this;
    if (!effective || this.stopping.signal.aborted) return;
    const { identity } = this.parts.enrolment;
    if (identity) await this.parts.files.fetchAll(effective.table, identity.token);
    if (this.effective === effective) await this.deliver(effective);
  }

  /** How long to leave problems alone before `again`. */
  readonly problemRetryMs = problemRetryMs;

  private async startFromDisk(): Promise<void> {
    try {
      const stored = await this.parts.store.load();
      if (!stored) return;
      this.effective = stored;
      this.heardAt = Date.parse(stored.table.publishedAt) || 0;
      // A held table is no base for patches and no proof of its lineage: ask for the whole one and judge anew.
      this.trusted = stored.held ? { ...stored.table, lineage: '', revision: -1 } : stored.table;
      this.accepted = stored.held ? undefined : stored.table;
      await this.deliver(stored);
      this.parts.logger.info('table taken from disk', { revision: stored.table.revision, held: stored.held });
    } catch (error) {
      this.parts.logger.error('table on disk not usable', { error });
    }
  }

  private async follow(): Promise<void> {
    const { signal } = this.stopping;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.step(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (error instanceof WrongBase) this.accepted = undefined;
        else if (failures === 1 || failures % 20 === 0)
          this.parts.logger.warn('routing table not read', { error, failures });
        if (errorCodeOf(error) === 'invalid' || errorCodeOf(error) === 'upstream') this.accepted = undefined;
        await pause(backoffMs(failures, retryFirstMs, retryMaxMs), signal);
      }
    }
  }

  private async step(signal: AbortSignal): Promise<void> {
    const { client, enrolment } = this.parts;
    const { token } = await enrolment.ensure(this.lineage);
    let bytes: Buffer | undefined;
    try {
      bytes = await client.pollTable(token, this.accepted, signal);
    } catch (error) {
      if (errorCodeOf(error) !== 'unauthenticated') throw error;
      await enrolment.renew(this.lineage);
      return;
    }
    this.heardAt = Date.now();
    if (!bytes) return;
    const next = await readTableAnswer(bytes, this.accepted, new Slice());
    await this.accept(next, token);
  }

  private async accept(next: RoutingTable, token: string): Promise<void> {
    const { files, store, logger } = this.parts;
    const { trusted } = this;
    if (trusted && trusted.lineage === next.lineage && next.revision < trusted.revision)
      throw new AppError(
        'upstream',
        `the routing table went back from revision ${trusted.revision} to ${next.revision}`,
      );
    const effective = decideEffective(trusted, next);
    if (effective.held)
      logger.warn('removals held until the control plane confirms them', {
        deployments: effective.heldDeployments.size,
      });
    await files.fetchAll(effective.table, token);
    await store.save(effective);
    this.accepted = next;
    if (!effective.held) this.trusted = next;
    this.effective = effective;
    await this.deliver(effective);
    await files.keepOnly(effective.table);
  }
}
