import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type Explanation,
  type Rollout,
  type RolloutEvent,
  type RolloutVerb,
  type StartRollout,
} from '@perch/contracts';

export interface RolloutQuery {
  endpoint?: string | undefined;
  /** True: only those that go on; false: only those that are over; left out: both. */
  active?: boolean | undefined;
  /** Id of the last one of the page before. */
  after?: string | undefined;
  limit: number;
}

const notYet = () => new AppError('not_available_yet', 'rollouts are not built yet');

/** Rollouts as people see and command them. */
@Injectable()
export class RolloutService {
  /** Newest first. */
  async list(_query: RolloutQuery): Promise<Rollout[]> {
    throw notYet();
  }

  /** Throws `not_found`. */
  async get(_id: string): Promise<Rollout> {
    throw notYet();
  }

  /** Oldest first, above event `after`. Throws `not_found`. */
  async events(_id: string, _after: number, _limit: number): Promise<RolloutEvent[]> {
    throw notYet();
  }

  /** The event that decided last (or event `eventId`), computed again from what it stored. Throws `not_found`. */
  async explain(_id: string, _eventId?: number): Promise<Explanation> {
    throw notYet();
  }

  /** By hand. Throws `not_found`, `conflict` (one goes on already), `invalid` (stable, quarantined, breaking, not progressive). */
  async start(_actor: Actor, _endpoint: string, _wish: StartRollout): Promise<Rollout> {
    throw notYet();
  }

  /** Throws `not_found`, `conflict` (over, or not in a state for this verb). The same verb twice is harmless. */
  async command(_actor: Actor, _id: string, _verb: RolloutVerb, _reason: string): Promise<Rollout> {
    throw notYet();
  }
}
