import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type Router, type RouterReport, tableSections } from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { type AnswerText, composeAnswer } from './documents/document.answer.ts';
import type { Follower } from './documents/document.plan.ts';
import { DocumentSource } from './documents/document.source.ts';
import { routingTableDocument } from './documents/document.store.ts';
import { FleetStore } from './fleet.store.ts';
import { hashToken } from './token.ts';
import { work } from './work.ts';

/** A router without a word for so long is not counted, and its problems are not heard. */
export const routerLiveMs = 10_000;

/** Where a route names files: of versions, of their modules, of modules that a pipeline runs. */
const filePaths = [
  '$.targets[*].files[*].sha256',
  '$.targets[*].processing.module.files[*].sha256',
  '$.pipeline.modules.*.module.files[*].sha256',
];

/** What routers ask and report, and what people see of them. */
@Injectable()
export class RouterService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
    private readonly documents: DocumentSource,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** Throws `unauthenticated`: forgotten or never known; enrol again, and keep serving meanwhile. */
  async authenticate(token: string): Promise<string> {
    const found = await this.stores.routers.byToken(this.transactions.manager, hashToken(token));
    if (!found) throw new AppError('unauthenticated', 'token of no router; enrol again with the join key');
    return found.id;
  }

  /** The long poll; null: nothing new within the wait. */
  async tableFor(follower: Follower, waitMs: number, signal?: AbortSignal): Promise<AnswerText | null> {
    const answer = await this.documents.poll(routingTableDocument, follower, waitMs, signal);
    if (answer === null) return null;
    const { head, base, sections } = answer;
    if (base !== null) return composeAnswer(head, base, sections, tableSections);
    const routers = (await this.list()).filter((router) => router.live).length;
    return composeAnswer(head, null, sections, tableSections, { publishedAt: new Date().toISOString(), routers });
  }

  /** The heartbeat, with the report when it changed; whatever waits for an acknowledgement is looked at again. */
  async report(id: string, { bootId, hash, report }: RouterReport): Promise<{ needReport: boolean }> {
    if (!report) {
      const known = await this.stores.routers.beat(this.transactions.manager, id);
      return { needReport: known.report_hash !== hash || known.boot_id !== bootId };
    }
    await this.transactions.run(async (tx) => {
      const before = await this.stores.routers.beat(tx, id);
      await this.stores.routers.saveReport(tx, id, bootId, hash, report);
      const changed = changedKeys(before.report?.problems ?? {}, report.problems);
      await this.wake(tx, [
        ...(await this.stores.placements.endpointsLeaving(tx)),
        ...(await this.stores.placements.endpointsOf(tx, changed)),
        ...(await this.stores.documents.endpointsOf(tx, changed)),
      ]);
    });
    return { needReport: false };
  }

  async list(): Promise<Router[]> {
    const rows = await this.stores.routers.list(this.transactions.manager);
    return rows.map((row) => ({
      id: row.id,
      name: row.name,
      live: Number(row.quiet_ms) < routerLiveMs,
      lastSeenAt: row.last_seen_at.toISOString(),
      lineage: row.report?.lineage ?? null,
      revision: row.report?.revision ?? null,
      held: row.report?.held ?? false,
      inFlight: row.report?.inFlight ?? {},
      problems: row.report?.problems ?? {},
      ...(row.report?.loading ? { loading: row.report.loading } : {}),
    }));
  }

  /** Nothing waits for this router any more; if it lives, it enrols again. Throws `not_found`. */
  async forget(actor: Actor, id: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      const known = /^[0-9a-f-]{36}$/.test(id) && (await this.stores.routers.forget(tx, id));
      if (!known) throw new AppError('not_found', `router ${id} does not exist; "perch fleet routers" shows them`);
      await this.changes.record(tx, actor, 'router.forget', id, {});
      await this.wake(tx, await this.stores.placements.endpointsLeaving(tx));
    });
  }

  private async wake(tx: Tx, endpoints: readonly string[]): Promise<void> {
    await this.workStore.enqueueAll(tx, work.endpoint, endpoints);
  }

  /** Which of these hashes the table names as files of a version or of a module: a router may ask for no others. */
  async tableHashes(hashes: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    for (const path of filePaths) {
      const { manager } = this.transactions;
      for (const hash of await this.stores.documents.hashesIn(manager, routingTableDocument, path, hashes))
        found.add(hash);
    }
    return found;
  }
}

const changedKeys = (before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((key) => before[key] !== after[key]);
