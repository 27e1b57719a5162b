import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { AppError, documentSchema } from '@perch/contracts';
import { type CounterMetric, LOGGER, type Logger, Metrics, pause } from '@perch/platform';
import { Transactions, Wakeups } from '@perch/platform/database';
import { Installation } from '../installation.service.ts';
import { FLEET_OPTIONS, type FleetOptions } from '../options.ts';
import { AnswerBook } from './answer.book.ts';
import { downgradeMember } from './document.downgrade.plan.ts';
import { decideAnswer, type Follower, type Head, type History, patchReach, servedSchema } from './document.plan.ts';
import { DocumentStore, type DocumentText, documentChannel } from './document.store.ts';

/** What a long poll found; sections are JSON texts of their members. `base` null: the whole document. */
export interface PolledDocument {
  head: Head & { schema: number };
  base: number | null;
  sections: Record<string, string>;
}

/** Characters of answers that are kept for the next follower: the last few tables, or many small documents. */
const keptChars = 48 * 1024 * 1024;
/** Spread over this time when everybody is woken at once, for none of them knows whether there is anything new. */
const spreadMs = 500;
const stepMs = 7;

/** Whoever holds nothing yet waits at least so long for the first document to be published. */
const firstDocumentMs = 2_000;

/** What documents are read with, side by side. */
@Injectable()
export class DocumentParts {
  constructor(
    readonly transactions: Transactions,
    readonly documents: DocumentStore,
    readonly installation: Installation,
  ) {}
}

/** Long polls on published documents, woken by NOTIFY. */
@Injectable()
export class DocumentSource implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopped = new AbortController();
  private readonly waiting = new Map<string, Set<() => void>>();
  private readonly polls = new Set<Promise<PolledDocument | null>>();
  /** Reads under way, and texts by revision. */
  private readonly sights = new AnswerBook<History>(0, () => 1);
  private readonly texts = new AnswerBook<PolledDocument>(keptChars, charsOf);
  private readonly wakes: CounterMetric<'document'>;
  private readonly given: number;

  constructor(
    private readonly parts: DocumentParts,
    private readonly wakeups: Wakeups,
    @Inject(FLEET_OPTIONS) options: FleetOptions,
    @Inject(LOGGER) private readonly logger: Logger,
    metrics: Metrics,
  ) {
    this.given = options.documentSchema;
    this.wakes = metrics.counter('perch_document_wakeups_total', 'Long polls woken by news.', ['document']);
    metrics.collected('gauge', 'perch_waiting_followers', 'Long polls that wait for a document.', ['document'], () =>
      ['routing-table', 'server'].map((document) => ({ labels: { document }, value: this.waitingFor(document) })),
    );
  }

  /** How many polls wait here now for documents of one kind. */
  waitingFor(kind: string): number {
    const ids = [...this.waiting.keys()].filter((id) => id === kind || id.startsWith(`${kind}/`));
    return ids.reduce((sum, id) => sum + this.waiting.get(id)!.size, 0);
  }

  /** Before the first poll, so that none waits for a notification that came too early. */
  onApplicationBootstrap(): void {
    this.wakeups.on(documentChannel, (changed) => this.wake(changed));
  }

  /** Ends the polls that wait, so that stopping does not take as long as they may. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    this.wake('*');
    await Promise.allSettled(this.polls);
  }

  /** The program stops: whoever is answered now should not keep its connection for another poll. */
  get stopping(): boolean {
    return this.stopped.signal.aborted;
  }

  /** `waitMs` 0 answers at once; null: nothing new. A follower that holds what was never given starts a new lineage and gets that. */
  async poll(id: string, follower: Follower, waitMs: number, signal?: AbortSignal): Promise<PolledDocument | null> {
    const polling = this.follow(id, follower, waitMs, signal).finally(() => this.polls.delete(polling));
    this.polls.add(polling);
    return polling;
  }

  private async follow(id: string, follower: Follower, waitMs: number, signal?: AbortSignal) {
    const deadline = Date.now() + Math.max(waitMs, follower.after === null ? firstDocumentMs : 0);
    for (let rotations = 0; ; ) {
      const turn = this.nextTurn(id);
      try {
        const answer = await this.read(id, follower);
        if (answer === 'went_back') {
          if (++rotations > 3) throw new AppError('internal', `document ${id} keeps going back in time`);
          continue;
        }
        const left = deadline - Date.now();
        if (answer !== null || left <= 0 || signal?.aborted || this.stopped.signal.aborted) return answer;
        await waitFor(turn.come, left, signal);
      } finally {
        turn.leave();
      }
    }
  }

  private async read(id: string, follower: Follower): Promise<PolledDocument | 'went_back' | null> {
    // Followers at one revision share what is being read; a wake-up ends the sharing, so that nobody misses its news.
    const key = `${id} ${follower.after}`;
    const read = () => this.parts.documents.history(this.parts.transactions.manager, id, follower.after);
    const history = await this.sights.get(key, read);
    const kind = decideAnswer(follower, history, this.given);
    if (kind === 'nothing') return null;
    if (kind !== 'went_back') return this.textOf(id, follower, history.head, kind === 'patch' ? follower.after : null);
    const finding = `a follower of ${id} holds revision ${follower.after} of ${follower.lineage}`;
    await this.parts.installation.rotate(history.head.lineage, follower.lineage, finding);
    this.sights.forget(`${id} `);
    return 'went_back';
  }

  /** One text for all who ask for the same step at the same head. It may already be of a newer one, and says so. */
  private textOf(id: string, follower: Follower, head: Head, base: number | null): Promise<PolledDocument> {
    const schema = servedSchema(follower, this.given);
    const { lineage, revision, confirmed } = head;
    const key = `${id} ${base} ${schema} ${lineage} ${revision} ${confirmed}`;
    return this.texts.get(key, async () => {
      const found = await this.parts.documents.text(this.parts.transactions.manager, id, base);
      if (base === null || (found.behind <= patchReach && found.head.lineage === lineage))
        return this.written(id, found, base, schema);
      return this.written(id, await this.parts.documents.text(this.parts.transactions.manager, id, null), null, schema);
    });
  }

  private written(id: string, { head, sections }: DocumentText, base: number | null, schema: number): PolledDocument {
    if (schema >= documentSchema) return { head: { ...head, schema }, base, sections };
    const older: Record<string, string> = {};
    for (const [section, text] of Object.entries(sections)) older[section] = this.downgrade(id, section, text, base);
    return { head: { ...head, schema }, base, sections: older };
  }

  private downgrade(id: string, section: string, text: string, base: number | null): string {
    const members = Object.entries(JSON.parse(text) as Record<string, unknown>);
    const turned = members.map(([key, value]) => [key, downgradeMember(section, value)] as const);
    const held = turned.filter(([key, value], place) => value === null && members[place]![1] !== null && key);
    if (held.length > 0)
      this.logger.warn('held back from a follower of an older release', {
        document: id,
        members: held.map(([key]) => key).slice(0, 20),
        reason: 'it does not know what these models need; upgrade it',
      });
    // In a whole document what is held back is absent, in a patch it is taken away.
    return JSON.stringify(Object.fromEntries(base === null ? turned.filter(([, value]) => value !== null) : turned));
  }

  private nextTurn(id: string): { come: Promise<void>; leave: () => void } {
    const waiters = this.waiting.get(id) ?? new Set();
    this.waiting.set(id, waiters);
    let wake: () => void = () => undefined;
    const come = new Promise<void>((resolve) => {
      wake = resolve;
    });
    waiters.add(wake);
    const leave = () => {
      waiters.delete(wake);
      if (waiters.size === 0 && this.waiting.get(id) === waiters) this.waiting.delete(id);
    };
    return { come, leave };
  }

  private wake(changed: string): void {
    let place = 0;
    for (const [id, waiters] of this.waiting) {
      if (changed !== '*' && changed !== id) continue;
      this.sights.forget(`${id} `);
      this.wakes.add({ document: id.split('/')[0]! }, waiters.size);
      const soon = changed === '*' && !this.stopped.signal.aborted ? (place++ * stepMs) % spreadMs : 0;
      for (const wake of waiters) this.wakeIn(soon, id, wake);
    }
  }

  private wakeIn(ms: number, id: string, wake: () => void): void {
    if (ms === 0) {
      wake();
      return;
    }
    const timer = setTimeout(() => {
      this.sights.forget(`${id} `);
      wake();
    }, ms);
    timer.unref();
  }
}

const charsOf = ({ sections }: PolledDocument): number =>
  Object.values(sections).reduce((sum, text) => sum + text.length, 0);

async function waitFor(turn: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<void> {
  const over = new AbortController();
  await Promise.race([turn, pause(ms, signal ? AbortSignal.any([over.signal, signal]) : over.signal)]);
  over.abort();
}
