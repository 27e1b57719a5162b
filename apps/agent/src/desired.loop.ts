import { Inject, Injectable } from '@nestjs/common';
import { errorCodeOf } from '@perch/contracts';
import { backoffMs, LOGGER, type Logger, pause } from '@perch/platform';
import {
  acceptDocument,
  DocumentStore,
  type Documents,
  desiredOf,
  newestDocument,
  noDocuments,
  readAnswer,
  SyncReconciler,
} from '@perch/sync';
import { ControlPlaneClient } from './control-plane.client.ts';
import { SessionService } from './session.service.ts';

const firstRetryMs = 200;
const longestRetryMs = 2_000;
/** While the control plane is away its absence is logged now and then, not at each try. */
const logEvery = 30;

/** Follows the control plane's document for this server, and goes by the stored one while nobody answers. */
@Injectable()
export class DesiredLoop {
  private readonly stopped = new AbortController();
  private readonly listeners: (() => void)[] = [];
  private held: Documents = noDocuments;
  /** The next answer must be a whole document. */
  private askWhole = false;
  private loop: Promise<void> | undefined;

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly client: ControlPlaneClient,
    private readonly session: SessionService,
    private readonly store: DocumentStore,
    private readonly reconciler: SyncReconciler,
  ) {}

  get documents(): Documents {
    return this.held;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  async start(): Promise<void> {
    const { documents, fault } = await this.store.load();
    if (fault) this.logger.warn('stored documents cannot be read', { fault });
    if (newestDocument(documents)) this.take(documents);
    this.loop = this.run();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.loop;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopped;
    for (let failures = 0; !signal.aborted; ) {
      try {
        await this.followOnce(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (errorCodeOf(error) !== 'unavailable') this.askWhole = true;
        if (failures % logEvery === 1) this.logger.warn('desired document was not read', { error, failures });
        await pause(backoffMs(failures, firstRetryMs, longestRetryMs), signal);
      }
    }
  }

  private async followOnce(signal: AbortSignal): Promise<void> {
    const newest = this.askWhole ? null : newestDocument(this.held);
    const follow = newest ? { after: newest.revision, lineage: newest.lineage, holds: newest.schema } : undefined;
    const askedAt = performance.now();
    const answer = await this.session.as((who) => this.client.desired(who, follow, signal));
    if (!answer) {
      // A proxy that does not wait must not turn the long poll into a flood.
      if (performance.now() - askedAt < firstRetryMs) await pause(firstRetryMs, signal);
      return;
    }
    const next = readAnswer(this.held, answer);
    const documents = acceptDocument(this.held, next, await this.present());
    if (documents === this.held) {
      await pause(firstRetryMs, signal);
      return;
    }
    await this.store.save(documents);
    this.askWhole = false;
    this.take(documents);
    const { revision, confirmed } = next;
    this.logger.info('desired document accepted', { revision, confirmed, removalsHeld: documents.pending !== null });
  }

  /** Our models on this server; waited for only when they decide whether a first document may remove anything. */
  private async present(): Promise<readonly string[]> {
    if (this.held.accepted) return [];
    while (!this.reconciler.snapshot && !this.stopped.signal.aborted) await pause(50, this.stopped.signal);
    return this.reconciler.snapshot?.present ?? [];
  }

  private take(documents: Documents): void {
    this.held = documents;
    this.session.lineage = newestDocument(documents)?.lineage ?? null;
    this.reconciler.setDesired(desiredOf(documents));
    for (const listener of this.listeners) listener();
  }
}
