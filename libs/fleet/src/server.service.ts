import { Injectable } from '@nestjs/common';
import { AppError, canonicalJson, type ObservedReport, type ObservedServer, type Server } from '@perch/contracts';
import { Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { type AnswerText, composeAnswer } from './documents/document.answer.ts';
import type { Follower } from './documents/document.plan.ts';
import { DocumentSource } from './documents/document.source.ts';
import { serverDocument } from './documents/document.store.ts';
import { DrainService } from './drain.service.ts';
import { FleetStore } from './fleet.store.ts';
import { type ObservedChange, planObserved, readTold, type Told } from './observed.plan.ts';
import { deviceOf } from './placement/memory.plan.ts';
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
    private readonly draining: DrainService,
  ) {}

  /** Id of the server whose token this is. Throws `unauthenticated`: enrol again, and keep serving meanwhile. */
  async authenticate(token: string): Promise<string> {
    const found = await this.stores.servers.byToken(this.transactions.manager, hashToken(token));
    if (!found) throw new AppError('unauthenticated', 'token of no server; enrol again with the join key');
    return found.id;
  }

  /** The long poll; null: nothing new within the wait. */
  async desiredFor(id: string, follower: Follower, waitMs: number, signal?: AbortSignal): Promise<AnswerText | null> {
    const answer = await this.documents.poll(serverDocument(id), follower, waitMs, signal);
    return answer && composeAnswer(answer.head, answer.base, answer.sections, ['models']);
  }

  /**
   * The heartbeat, with the state when it changed. `needReport`: send the whole state with the next one. `drained`: it
   * is out of service and nobody sends to it any more.
   */
  async observed(id: string, report: ObservedReport): Promise<{ needReport: boolean; drained?: boolean }> {
    const { manager } = this.transactions;
    const told = readTold(report);
    const before = told
      ? await this.transactions.run((tx) => this.take(tx, id, report, told))
      : await this.stores.servers.beat(manager, id);
    if (!told) await this.follow(manager, id, before, report);
    const drained = before.drained_by === null ? undefined : await this.draining.isDrained(manager, id);
    const holds = (hash: string) => before.observed_hash === hash && before.boot_id === report.bootId;
    const known = told ? told.base === null || holds(told.base) : holds(report.hash);
    return { needReport: !known, ...(drained === undefined ? {} : { drained }) };
  }

  /** Takes the state, or what changed in it; a change of a state that we do not hold is left for the whole one. */
  private async take(tx: Tx, id: string, report: ObservedReport, { base, observed, gone }: Told): Promise<Beaten> {
    const { servers } = this.stores;
    const before = await servers.beat(tx, id); // holds the row until the end
    if (base !== null && (before.observed_hash !== base || before.boot_id !== report.bootId)) {
      await this.follow(tx, id, before, report);
      return before;
    }
    const names = base === null ? null : [...Object.keys(observed.models), ...gone];
    const change = planObserved(await servers.models(tx, id, names), observed);
    if (base === null) await servers.saveObserved(tx, id, report.bootId, report.hash, observed);
    else await servers.patchObserved(tx, id, report.hash, observed, gone);
    await servers.saveModels(tx, id, change.changed, change.gone);
    await this.stores.placements.markProved(tx, id, change.proved, change.broken);
    await this.learn(tx, id, observed, change.measured);
    const touched = [...change.changed.map(({ name }) => name), ...change.gone];
    if (touched.length > 0) await this.wake(tx, await this.stores.placements.endpointsOn(tx, id, touched));
    if (touched.length > 0 && before.mode !== null) await this.workStore.enqueue(tx, work.source, id);
    await this.followFacts(tx, id, before, observed);
    const drained_by = await this.draining.followLeaving(tx, id, before.drained_by, observed.leaving ?? false);
    await this.follow(tx, id, before, report);
    return { ...before, drained_by };
  }

  private async learn(tx: Tx, id: string, { facts }: ObservedServer, measured: ObservedChange['measured']) {
    if (measured.length === 0) return;
    if (!(await this.stores.capacity.learn(tx, deviceOf(facts), measured))) return;
    await this.stores.capacity.recount(tx, [id]);
    // Its document need not ask for a measurement any more.
    await this.workStore.enqueue(tx, work.server, id);
  }

  /** Its first word, other software, or other hardware: what could not run there may run now, and the other way round. */
  private async followFacts(tx: Tx, id: string, before: Beaten, { facts }: ObservedServer): Promise<void> {
    if (before.boot_id !== null && canonicalJson(before.facts) === canonicalJson(facts ?? null)) return;
    await this.stores.capacity.forgetFailures(tx, id);
    await this.stores.capacity.recount(tx, [id]);
    await this.workStore.enqueue(tx, work.pool, before.pool);
    await this.workStore.enqueue(tx, work.server, id);
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
    await this.workStore.enqueueAll(tx, work.endpoint, endpoints);
  }

  async list(): Promise<Server[]> {
    const { manager } = this.transactions;
    const drains = await this.draining.views(manager);
    return (await this.stores.servers.list(manager)).map((row) => ({
      id: row.id,
      name: row.name,
      pool: row.pool,
      http: row.http,
      grpc: row.grpc,
      labels: row.labels,
      live: row.presence === 'live',
      lastSeenAt: row.last_seen_at.toISOString(),
      desiredRevision: Number(row.revision ?? 0),
      bootId: row.boot_id,
      observed: row.observed,
      ...(row.mode ? { external: { mode: row.mode, problem: row.problem } } : {}),
      drain: drains.get(row.id) ?? null,
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
