import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { AppError, documentSchema } from '@perch/contracts';
import { Metrics, pause } from '@perch/platform';
import { Transactions, type Tx, Wakeups } from '@perch/platform/database';
import { decideAnswer, type Follower, type Head } from './document.plan.ts';
import { DocumentStore, documentChannel } from './document.store.ts';
import { Installation } from './installation.service.ts';

type Sections = Record<string, Record<string, unknown>>;

/** What a long poll answers, before the document's own kind adds its fields; null: nothing new within the wait. */
export type PolledDocument =
  | { kind: 'whole'; head: Head & { schema: number }; sections: Sections }
  | { kind: 'patch'; base: number; head: Head & { schema: number }; patch: Sections }
  | null;

/** Whoever holds nothing yet waits at least so long for the first document to be published. */
const firstDocumentMs = 2_000;

/** Long polls on published documents, woken by NOTIFY. */
@Injectable()
export class DocumentSource implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopped = new AbortController();
  private readonly waiting = new Map<string, Set<() => void>>();
  private readonly polls = new Set<Promise<PolledDocument>>();

  constructor(
    private readonly transactions: Transactions,
    private readonly store: DocumentStore,
    private readonly installation: Installation,
    private readonly wakeups: Wakeups,
    metrics: Metrics,
  ) {
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

  /** `waitMs` 0 answers at once. A follower that holds what was never given starts a new lineage and gets that. */
  async poll(id: string, follower: Follower, waitMs: number, signal?: AbortSignal): Promise<PolledDocument> {
    const polling = this.follow(id, follower, waitMs, signal).finally(() => this.polls.delete(polling));
    this.polls.add(polling);
    return polling;
  }

  private async follow(id: string, follower: Follower, waitMs: number, signal?: AbortSignal): Promise<PolledDocument> {
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

  private async read(id: string, follower: Follower): Promise<PolledDocument | 'went_back'> {
    const found = await this.readOnce(id, follower);
    if (found !== 'went_back') return found;
    const { lineage } = (await this.store.history(this.transactions.manager, id)).head;
    await this.installation.rotate(
      lineage,
      follower.lineage,
      `a follower of ${id} holds revision ${follower.after} of ${follower.lineage}`,
    );
    return 'went_back';
  }

  /** Head and members of one snapshot. */
  private async readOnce(id: string, follower: Follower): Promise<PolledDocument | 'went_back'> {
    const quick = decideAnswer(follower, await this.store.history(this.transactions.manager, id));
    if (quick === 'nothing') return null;
    if (quick === 'went_back') return quick;
    return this.transactions.run(async (tx) => {
      await tx.query('set transaction isolation level repeatable read read only');
      const history = await this.store.history(tx, id);
      const answer = decideAnswer(follower, history);
      if (answer === 'nothing') return null;
      if (answer === 'went_back') return answer;
      return this.build(tx, id, history.head, answer === 'patch' ? follower.after : null);
    });
  }

  private async build(tx: Tx, id: string, { lineage, revision, confirmed }: Head, base: number | null) {
    const head = { lineage, revision, confirmed, schema: documentSchema };
    const sections: Sections = {};
    for (const { section, key, value } of await this.store.members(tx, id, base)) {
      sections[section] ??= {};
      sections[section][key] = value;
    }
    return base === null
      ? { kind: 'whole' as const, head, sections }
      : { kind: 'patch' as const, base, head, patch: sections };
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
    for (const [id, waiters] of this.waiting) if (changed === '*' || changed === id) for (const wake of waiters) wake();
  }
}

async function waitFor(turn: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<void> {
  const over = new AbortController();
  await Promise.race([turn, pause(ms, signal ? AbortSignal.any([over.signal, signal]) : over.signal)]);
  over.abort();
}
