import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, canonicalJson } from '@perch/contracts';
import { work } from '@perch/fleet';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import type { WantedVersion } from '../endpoint.plan.ts';
import { unknownEndpoint } from '../endpoint-change.service.ts';
import { EndpointsStore } from '../endpoints.store.ts';
import { WantedObserve } from '../resolve/wanted.observe.ts';
import type { NewQuarantine } from './quarantine.store.ts';
import { signatureOf } from './signature.plan.ts';
import type { TrafficForce, TrafficSight } from './traffic.plan.ts';

/** A version as the spec in force would deploy it, found outside any transaction. */
export interface Proposal {
  endpoint: string;
  generation: number;
  version: number;
  digest: string;
  wish: WantedVersion;
}

/** What a rollout sees of its endpoint, and what it may say about the endpoint's traffic. */
@Injectable()
export class TrafficService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly wanted: WantedObserve,
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
    const refusals = await this.stores.traffic.quarantine.refusals(tx, endpoint);
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

  /**
   * Says who gets the traffic; the endpoint's pass follows at once. Saying the same again changes nothing; of an endpoint
   * that is not progressive (any more) nothing is kept.
   */
  async put(tx: Tx, endpoint: string, force: TrafficForce): Promise<void> {
    const { force: before } = await this.stores.traffic.lock(tx, endpoint);
    const row = await this.stores.endpoints.get(tx, endpoint);
    if (row?.spec?.traffic.mode !== 'progressive') return;
    if (canonicalJson(before) === canonicalJson(force)) return;
    await this.stores.traffic.saveForce(tx, endpoint, force);
    await this.workStore.enqueue(tx, work.endpoint, endpoint);
  }

  /** From now on this digest is never deployed by itself. Twice is once. */
  async quarantine(tx: Tx, actor: Actor, entry: NewQuarantine): Promise<void> {
    if (!(await this.stores.traffic.quarantine.insert(tx, entry))) return;
    const { endpoint, ...detail } = entry;
    await this.changes.record(tx, actor, 'quarantine.add', endpoint, detail);
    await this.workStore.enqueue(tx, work.endpoint, endpoint);
  }

  /**
   * What the version would be deployed as under the spec in force, whether the rule wants it or not. Throws `not_found`
   * (no such endpoint, no such version, or one that is archived or still uploading), `invalid` when the endpoint is not
   * progressive, `conflict` when just that was refused before.
   */
  async propose(endpoint: string, version: number): Promise<Proposal> {
    const { manager } = this.transactions;
    const row = await this.stores.endpoints.get(manager, endpoint);
    if (!row?.spec) throw unknownEndpoint(endpoint);
    const { generation, spec } = row;
    if (spec.traffic.mode !== 'progressive')
      throw new AppError(
        'invalid',
        `endpoint ${endpoint}: traffic.mode is ${spec.traffic.mode}; rollouts want progressive`,
      );
    const known = await this.stores.deployments.ofEndpoint(manager, endpoint);
    const wish = await this.wanted.observeOne(spec, version, known);
    const model = `${spec.model.project}/${spec.model.name}`;
    if (!wish)
      throw new AppError(
        'not_found',
        `endpoint ${endpoint}: model ${model} has no version ${version} that is a draft or published`,
      );
    const refused = (await this.stores.traffic.quarantine.refusals(manager, endpoint)).find(
      ({ digest }) => digest === wish.digest,
    );
    if (refused)
      throw new AppError(
        'conflict',
        `endpoint ${endpoint}: version ${version} was refused: ${refused.reason}; release it with "perch endpoint quarantine ${endpoint} --release ${refused.digest.slice(0, 12)}"`,
      );
    return { endpoint, generation, version, digest: wish.digest, wish };
  }

  /**
   * Makes the deployment of a proposal, so that `put` can name its digest; one that is not put in the same transaction
   * drains again. To be called before `look`. Throws `conflict` when the spec was changed since.
   */
  async prepare(tx: Tx, { endpoint, generation, wish }: Proposal): Promise<void> {
    const row = await this.stores.endpoints.lock(tx, endpoint);
    if (row?.generation !== generation || !row.spec)
      throw new AppError('conflict', `endpoint ${endpoint} was changed meanwhile; look at it and try again`);
    const live = await this.stores.deployments.ofEndpoint(tx, endpoint);
    if (live.some(({ digest }) => digest === wish.digest)) return;
    for (const variant of wish.body?.variants ?? []) await this.stores.fleet.placements.describeVariant(tx, variant);
    const { version, digest, sourceDigest, tritonModel, body, fault } = wish;
    await this.stores.deployments.insert(tx, {
      id: randomUUID(),
      endpoint,
      generation,
      project: row.spec.model.project,
      model: row.spec.model.name,
      version,
      digest,
      source_digest: sourceDigest,
      triton_model: tritonModel,
      body,
      state: body ? 'pending' : 'failed',
      reason: fault,
    });
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
