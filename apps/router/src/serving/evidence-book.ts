import type { RouteRollout, WorkerEvidence } from '@perch/contracts';
import type { CompiledRoute } from '@perch/routing';
import type { Call } from './call.ts';
import { EvidenceEpoch, type PairOutcome } from './evidence-epoch.ts';
import type { EvidenceLease } from './evidence-lease.ts';
import type { EvidenceTrial } from './evidence-trial.ts';

/** What counting looks at in a request that was put on an arm. */
export type Assigned = Pick<Call, 'route' | 'pin' | 'side' | 'bucket' | 'lapsed'>;

/**
 * An epoch that left the table may still get requests that came before, and comes back when its candidate was nowhere for
 * a while: one that was forgotten would then count from 0, and counts that fell are not believed.
 */
const keepMs = 24 * 3_600_000;

const keyOf = ({ id, epoch }: RouteRollout): string => `${id} ${epoch}`;

/**
 * Evidence of one serving process: for each epoch of each rollout what was counted on either arm. Costs endpoints
 * without a rollout one comparison.
 */
export class EvidenceBook {
  private readonly epochs = new Map<string, EvidenceEpoch>();
  /** Epochs that are in no route any more, and since when. */
  private readonly left = new Map<string, number>();
  /** By the table's own object: a look-up without making a key. */
  private known = new WeakMap<RouteRollout, EvidenceEpoch>();
  private readonly lease: EvidenceLease;

  constructor(lease: EvidenceLease) {
    this.lease = lease;
  }

  /**
   * The request was put on its arm; `now` by `performance.now()`. Undefined where nobody is on trial or it is no part of
   * it: no rollout, a pinned version, a lapsed lease.
   */
  begin({ route, pin, side, bucket, lapsed }: Assigned, now: number): EvidenceTrial | undefined {
    const { rollout, sticky } = route;
    if (rollout === undefined || pin !== undefined || side === undefined || lapsed) return undefined;
    const epoch = this.epochOf(rollout.spec, sticky !== undefined);
    if (sticky && bucket < 0) return epoch.beginKeyless(side, now);
    return epoch.begin(side, bucket, now, route.route.timeoutMs);
  }

  /** The same request was answered by both sides of a shadow. */
  pair(route: CompiledRoute, outcome: PairOutcome, now: number): void {
    this.shadowed(route, now)?.pair(outcome);
  }

  /** A pair that could not be sent, or lost a side for reasons of ours. */
  pairDropped(route: CompiledRoute, now: number): void {
    this.shadowed(route, now)?.pairDropped();
  }

  /** Whether candidates get nothing for now, shadows included. */
  isLapsed({ rollout }: CompiledRoute, now: number): boolean {
    return rollout !== undefined && this.lease.isOver(rollout.spec.leaseMs, now);
  }

  private shadowed(route: CompiledRoute, now: number): EvidenceEpoch | undefined {
    if (!route.rollout || this.isLapsed(route, now)) return undefined;
    return this.epochOf(route.rollout.spec, route.sticky !== undefined);
  }

  private epochOf(spec: RouteRollout, sticky: boolean): EvidenceEpoch {
    let epoch = this.known.get(spec);
    if (epoch) return epoch;
    const key = keyOf(spec);
    epoch = this.epochs.get(key);
    if (!epoch) {
      epoch = new EvidenceEpoch(spec, sticky);
      this.epochs.set(key, epoch);
    }
    this.known.set(spec, epoch);
    return epoch;
  }

  /** Another table is in force: what it does not name is forgotten in a while. */
  keepOnly(routes: Iterable<CompiledRoute>, now: number): void {
    const named = new Set<string>();
    for (const { rollout } of routes) if (rollout) named.add(keyOf(rollout.spec));
    for (const key of this.epochs.keys())
      if (named.has(key)) this.left.delete(key);
      else if (!this.left.has(key)) this.left.set(key, now);
  }

  private forget(now: number): void {
    for (const [key, since] of this.left) {
      if (now - since < keepMs || !this.epochs.get(key)?.atRest) continue;
      this.epochs.delete(key);
      this.left.delete(key);
      this.known = new WeakMap();
    }
  }

  /** What changed since it was told last. `all`: the process ends, no request comes any more. */
  changed(now: number, all = false): WorkerEvidence[] {
    const news: WorkerEvidence[] = [];
    for (const epoch of this.epochs.values()) {
      const told = epoch.tell(now, all);
      if (told) news.push(told);
    }
    if (this.left.size > 0) this.forget(now);
    return news;
  }
}
