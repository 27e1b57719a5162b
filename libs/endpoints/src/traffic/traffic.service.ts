import { Inject, Injectable } from '@nestjs/common';
import { type Actor, canonicalJson } from '@perch/contracts';
import { work } from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, type Tx, WorkStore } from '@perch/platform/database';
import { EndpointsStore } from '../endpoints.store.ts';
import type { NewQuarantine } from './quarantine.store.ts';
import { signatureOf } from './signature.plan.ts';
import type { TrafficForce, TrafficSight } from './traffic.plan.ts';

/** What a rollout sees of its endpoint, and what it may say about the endpoint's traffic. */
@Injectable()
export class TrafficService {
  constructor(
    private readonly stores: EndpointsStore,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /**
   * Inside a transaction the traffic row is locked until its end, so that what is put is put on what was seen. Lock
   * order: endpoint (only `prepare` takes it), then this row; look at one endpoint a transaction.
   */
  async look(tx: Tx, endpoint: string): Promise<TrafficSight> {
    const { wish, force } = await this.stores.traffic.lock(tx, endpoint);
    const row = await this.stores.endpoints.get(tx, endpoint);
    const deployments = await this.stores.deployments.ofEndpoint(tx, endpoint);
    const placements = await this.stores.fleet.placements.ofEndpoint(tx, endpoint);
    const refusals = await this.stores.quarantine.refusals(tx, endpoint);
    return {
      endpoint,
      exists: row?.spec != null,
      generation: row?.generation ?? 0,
      spec: row?.spec ?? null,
      wish,
      force,
      deployments: deployments.map(({ id, version, digest, state, reason, since, body }) => ({
        id,
        version,
        digest,
        state,
        reason,
        since,
        signature:
          body &&
          signatureOf(
            body,
            placements.filter(({ deployment }) => deployment === id),
          ),
      })),
      quarantine: refusals.map(({ digest }) => digest),
    };
  }

  /** Says who gets the traffic; the endpoint's pass follows at once. Saying the same again changes nothing. */
  async put(tx: Tx, endpoint: string, force: TrafficForce): Promise<void> {
    const { force: before } = await this.stores.traffic.lock(tx, endpoint);
    if (canonicalJson(before) === canonicalJson(force)) return;
    await this.stores.traffic.saveForce(tx, endpoint, force);
    await this.workStore.enqueue(tx, work.endpoint, endpoint);
  }

  /** From now on this digest is never deployed by itself. Twice is once. */
  async quarantine(tx: Tx, actor: Actor, entry: NewQuarantine): Promise<void> {
    if (!(await this.stores.quarantine.insert(tx, entry))) return;
    const { endpoint, ...detail } = entry;
    await this.changes.record(tx, actor, 'quarantine.add', endpoint, detail);
    await this.workStore.enqueue(tx, work.endpoint, endpoint);
  }

  /** Endpoints that a rollout may concern: progressive ones, and those that were until now. In order of names, for resyncs. */
  async someNames(tx: Tx, after: string, most: number): Promise<string[]> {
    const rows: { endpoint: string }[] = await tx.query(
      'select endpoint from endpoint_traffic where endpoint > $1 order by endpoint limit $2',
      [after, most],
    );
    return rows.map(({ endpoint }) => endpoint);
  }
}
