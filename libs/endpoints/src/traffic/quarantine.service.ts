import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type QuarantineEntry } from '@perch/contracts';
import { work } from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { unknownEndpoint } from '../endpoint-change.service.ts';
import { EndpointsStore } from '../endpoints.store.ts';
import { rolloutWork } from './traffic.plan.ts';

const leastDigits = 8;

/** What people do about refused deployments and held updates. */
@Injectable()
export class QuarantineService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** Newest first. Throws `not_found` for an endpoint that never was. */
  async list(endpoint: string): Promise<QuarantineEntry[]> {
    const { manager } = this.transactions;
    const entries = await this.stores.traffic.quarantine.list(manager, endpoint);
    if (entries.length === 0 && !(await this.stores.endpoints.get(manager, endpoint))) throw unknownEndpoint(endpoint);
    return entries;
  }

  /**
   * May be deployed again from now on. `digest`: the whole one, or so many of its first digits that it is the only one.
   * Throws `not_found`, or `conflict` when several begin with it.
   */
  async release(actor: Actor, endpoint: string, digest: string): Promise<QuarantineEntry> {
    const entry = this.pick(await this.list(endpoint), endpoint, digest);
    await this.transactions.run(async (tx) => {
      if (!(await this.stores.traffic.quarantine.release(tx, endpoint, entry.digest)))
        throw notRefused(endpoint, digest);
      const { version, reason } = entry;
      await this.changes.record(tx, actor, 'quarantine.release', endpoint, { digest: entry.digest, version, reason });
      await this.wake(tx, endpoint);
    });
    return entry;
  }

  /** Lets automatic updates go on. Nobody held them: nothing changes. Throws `not_found`. */
  async resume(actor: Actor, endpoint: string, reason: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      const row = await this.stores.endpoints.get(tx, endpoint);
      if (!row?.spec) throw unknownEndpoint(endpoint);
      const { force } = await this.stores.traffic.lock(tx, endpoint);
      if (force.held === null) return;
      await this.stores.traffic.saveForce(tx, endpoint, { ...force, held: null });
      await this.changes.record(tx, actor, 'endpoint.resume', endpoint, { heldBy: force.held, reason });
      await this.wake(tx, endpoint);
    });
  }

  private pick(entries: readonly QuarantineEntry[], endpoint: string, digest: string): QuarantineEntry {
    const found = entries.filter((entry) => entry.digest.startsWith(digest));
    const exact = found.find((entry) => entry.digest === digest);
    const [first] = found;
    if (!first || (digest.length < leastDigits && !exact)) throw notRefused(endpoint, digest);
    if (found.length > 1 && !exact)
      throw new AppError(
        'conflict',
        `endpoint ${endpoint}: several refused deployments begin with ${digest}; give more`,
      );
    return exact ?? first;
  }

  private async wake(tx: Tx, endpoint: string): Promise<void> {
    await this.workStore.enqueue(tx, work.endpoint, endpoint);
    await this.workStore.enqueue(tx, rolloutWork, endpoint);
  }
}

const notRefused = (endpoint: string, digest: string) =>
  new AppError(
    'not_found',
    `endpoint ${endpoint}: nothing with digest ${digest} was refused; "perch endpoint quarantine ${endpoint}" shows what was (give at least ${leastDigits} digits)`,
  );
