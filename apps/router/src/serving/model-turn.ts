import type { Cancellation } from '@perch/triton/inference';
import type { Call } from './call.ts';
import type { Deployment } from './deployment.ts';
import type { Upstream } from './upstream.ts';

/**
 * One call of the model from within a module's `process`: tries servers of its own, beside others of the same request,
 * and is given up with it.
 */
export class ModelTurn {
  readonly arm: Deployment;
  readonly exchange: Cancellation;
  tried: Set<Upstream> | undefined;
  /** It never waits for a server: the request does, from its beginning. */
  readonly waited = false;
  private readonly call: Call;

  constructor(call: Call, cancellation: Cancellation) {
    this.call = call;
    this.arm = call.arm;
    this.exchange = cancellation;
  }

  get endpoint() {
    return this.call.endpoint;
  }
  get route() {
    return this.call.route;
  }
  get first() {
    return this.call.first;
  }
  get shortened() {
    return this.call.shortened;
  }
  get deadlineAt() {
    return this.call.deadlineAt;
  }
  leftMs(now: number): number {
    return this.call.leftMs(now);
  }
}
