import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type Explanation,
  policyOf,
  type Rollout,
  type RolloutEvent,
  type RolloutVerb,
  type StartRollout,
} from '@perch/contracts';
import { TrafficService } from '@perch/endpoints';
import { Transactions, type Tx } from '@perch/platform/database';
import { inputOf } from './decision-input.plan.ts';
import { explainDecision, sameDecision } from './explain.plan.ts';
import { RolloutApply } from './rollout.apply.ts';
import type { RolloutRecord } from './rollout.entity.ts';
import { RolloutObserve } from './rollout.observe.ts';
import { RolloutStore } from './rollout.store.ts';
import { startByHand } from './rollout-start.plan.ts';
import { planCommand } from './rollout-verb.plan.ts';
import { viewEvent, viewRollout } from './rollout-view.ts';
import { decideStep } from './statistics/step.decide.ts';

export interface RolloutQuery {
  endpoint?: string | undefined;
  /** True: only those that go on; false: only those that are over; left out: both. */
  active?: boolean | undefined;
  /** Id of the last one of the page before. */
  after?: string | undefined;
  limit: number;
}

/** What would have started: thrown, so that nothing stays of the transaction that found it out. */
class Undone extends Error {
  constructor(readonly rollout: Rollout) {
    super('a dry run');
  }
}

/** Rollouts as people see and command them. */
@Injectable()
export class RolloutService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: RolloutStore,
    private readonly observing: RolloutObserve,
    private readonly applier: RolloutApply,
    private readonly traffic: TrafficService,
  ) {}

  /** Newest first. */
  async list({ endpoint, active, after, limit }: RolloutQuery): Promise<Rollout[]> {
    const query = { endpoint: endpoint ?? null, active: active ?? null, after: after ?? null, limit };
    const rows = await this.store.list(this.transactions.manager, query);
    return rows.map(viewRollout);
  }

  /** Throws `not_found`. */
  async get(id: string): Promise<Rollout> {
    return viewRollout(await this.found(this.transactions.manager, id));
  }

  /** Oldest first, above event `after`. Throws `not_found`. */
  async events(id: string, after: number, limit: number): Promise<RolloutEvent[]> {
    const { manager } = this.transactions;
    await this.found(manager, id);
    return (await this.store.events(manager, id, after, limit)).map(viewEvent);
  }

  /**
   * The event that was decided by evidence last (or event `eventId`), computed again from what it stored. Before there is
   * one: the decision that evidence would give now. Throws `not_found`.
   */
  async explain(id: string, eventId?: number): Promise<Explanation> {
    const record = await this.found(this.transactions.manager, id);
    const event = await this.store.decisive(this.transactions.manager, id, eventId ?? null);
    if (!event && eventId !== undefined) throw new AppError('not_found', `rollout ${id} has no event ${eventId}`);
    const input = event ? event.input : await this.inputNow(record);
    const recomputed = input && decideStep(input);
    const stored = event ? event.decision : recomputed;
    const rollout = viewRollout(record);
    return {
      rollout,
      event: event && viewEvent(event),
      input,
      recomputed,
      agrees: stored === null || recomputed === null || sameDecision(stored, recomputed),
      sentences: explainDecision(rollout, stored, input),
    };
  }

  private async inputNow(record: RolloutRecord) {
    return this.transactions.run(async (tx) => {
      const { active, evidence, now } = await this.observing.observe(tx, record.endpoint);
      return active?.id === record.id && evidence ? inputOf(active, evidence, now) : null;
    });
  }

  /**
   * By hand. Throws `not_found` (endpoint, version), `invalid` (the endpoint is not progressive) or `conflict` (one goes on
   * already; the version is stable, in quarantine, or breaks callers). `dryRun`: nothing stays; it says what would start.
   */
  async start(
    actor: Actor,
    endpoint: string,
    wish: StartRollout,
    { dryRun = false }: { dryRun?: boolean } = {},
  ): Promise<Rollout> {
    const { version, allowBreaking, reason } = wish;
    const proposal = version === undefined ? null : await this.traffic.propose(endpoint, version);
    const starting = this.transactions.run(async (tx) => {
      if (proposal) await this.traffic.prepare(tx, proposal);
      const world = await this.observing.observe(tx, endpoint);
      const policy = policyOf(wish.policy ?? world.sight.spec?.traffic.policy);
      const hand = { wish: proposal, policy, allowBreaking, actor: actor.name, reason };
      const plan = startByHand(world, hand, randomUUID);
      if (dryRun) throw new Undone(viewRollout(plan.rollout!));
      await this.applier.command(tx, world, plan, actor);
      return plan.rollout!.id;
    });
    const started = await starting.catch((error: unknown) => {
      if (error instanceof Undone) return error;
      throw error;
    });
    return started instanceof Undone ? started.rollout : this.get(started);
  }

  /** Throws `not_found`, or `conflict` (over, or not in a state for this verb). The same verb twice is harmless. */
  async command(actor: Actor, id: string, verb: RolloutVerb, reason: string): Promise<Rollout> {
    const { endpoint } = await this.found(this.transactions.manager, id);
    await this.transactions.run(async (tx) => {
      const world = await this.observing.observe(tx, endpoint);
      const rollout = world.active?.id === id ? world.active : await this.found(tx, id);
      const plan = planCommand(world, rollout, { verb, actor: actor.name, reason });
      if (!plan) return;
      await this.applier.command(tx, world, plan, actor);
    });
    return this.get(id);
  }

  private async found(tx: Tx, id: string): Promise<RolloutRecord> {
    const record = await this.store.get(tx, id);
    if (!record) throw new AppError('not_found', `rollout ${id} does not exist; list them with: perch rollout list`);
    return record;
  }
}
