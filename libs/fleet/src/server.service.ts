import { Injectable } from '@nestjs/common';
import {
  AppError,
  type DesiredAnswer,
  type DesiredServer,
  type ObservedReport,
  type ObservedServer,
  type Server,
} from '@perch/contracts';
import { Transactions, type Tx, WorkStore } from '@perch/platform/database';
import type { Follower } from './document.plan.ts';
import { DocumentSource } from './document.source.ts';
import { serverDocument } from './document.store.ts';
import { FleetStore } from './fleet.store.ts';
import { planObserved } from './observed.plan.ts';
import type { Beaten } from './server.store.ts';
import { hashToken } from './token.ts';
import { theOnlyKey, work } from './work.ts';

/** What servers ask and report, and what people see of them. */
@Injectable()
export class ServerService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
    private readonly documents: DocumentSource,
    private readonly workStore: WorkStore,
  ) {}

  /** Id of the server whose token this is. Throws `unauthenticated`: enrol again, and keep serving meanwhile. */
  async authenticate(token: string): Promise<string> {
    const found = await this.stores.servers.byToken(this.transactions.manager, hashToken(token));
    if (!found) throw new AppError('unauthenticated', 'token of no server; enrol again with the join key');
    return found.id;
  }

  /** The long poll; null: nothing new within the wait. */
  async desiredFor(
    id: string,
    follower: Follower,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<DesiredAnswer | null> {
    const answer = await this.documents.poll(serverDocument(id), follower, waitMs, signal);
    if (answer === null) return null;
    if (answer.kind === 'patch') return { kind: 'patch', base: answer.base, ...answer.head, patch: answer.patch };
    const models = (answer.sections['models'] ?? {}) as DesiredServer['models'];
    return { kind: 'whole', document: { ...answer.head, models } };
  }

  /** The heartbeat, with the state when it changed. `needReport`: send the whole state with the next one. */
  async observed(id: string, report: ObservedReport): Promise<{ needReport: boolean }> {
    const { manager } = this.transactions;
    if (report.observed) {
      const { observed } = report;
      await this.transactions.run((tx) => this.take(tx, id, report, observed));
      return { needReport: false };
    }
    const before = await this.stores.servers.beat(manager, id);
    await this.follow(manager, id, before, report);
    return { needReport: before.observed_hash !== report.hash || before.boot_id !== report.bootId };
  }

  private async take(tx: Tx, id: string, report: ObservedReport, observed: ObservedServer): Promise<void> {
    await this.stores.servers.lock(tx, id);
    const before = await this.stores.servers.beat(tx, id);
    const change = planObserved(await this.stores.servers.models(tx, id), observed);
    await this.stores.servers.saveObserved(tx, id, report.bootId, report.hash, observed);
    await this.stores.servers.saveModels(tx, id, change.changed, change.gone);
    await this.stores.placements.markProved(tx, id, change.proved, change.broken);
    const touched = [...change.changed.map(({ name }) => name), ...change.gone];
    if (touched.length > 0) await this.wake(tx, await this.stores.placements.endpointsOn(tx, id, touched));
    await this.follow(tx, id, before, report);
  }

  /** What a word from a server means beside its state: it is back, or it is somewhere else. */
  private async follow(tx: Tx, id: string, before: Beaten, { address }: ObservedReport): Promise<void> {
    if (before.presence !== 'live') {
      await this.wake(tx, await this.stores.placements.endpointsOn(tx, id));
      await this.workStore.enqueue(tx, work.pool, before.pool);
    }
    if (!address || (address.http === before.http && address.grpc === before.grpc)) return;
    await this.stores.servers.move(tx, id, address);
    await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
  }

  private async wake(tx: Tx, endpoints: readonly string[]): Promise<void> {
    for (const endpoint of endpoints) await this.workStore.enqueue(tx, work.endpoint, endpoint);
  }

  async list(): Promise<Server[]> {
    const rows = await this.stores.servers.list(this.transactions.manager);
    return rows.map((row) => ({
      id: row.id,
      name: row.name,
      pool: row.pool,
      http: row.http,
      grpc: row.grpc,
      labels: row.labels,
      live: row.presence === 'live',
      lastSeenAt: row.last_seen_at.toISOString(),
      desiredRevision: Number(row.revision ?? 0),
      observed: row.observed,
      drain: null,
    }));
  }

  async ids(): Promise<string[]> {
    return this.stores.servers.ids(this.transactions.manager);
  }

  /** Which of these hashes the server's document names: it may ask for no others. */
  async desiredHashes(id: string, hashes: readonly string[]): Promise<Set<string>> {
    return this.stores.documents.hashesIn(this.transactions.manager, serverDocument(id), '$.files[*].sha256', hashes);
  }
}
