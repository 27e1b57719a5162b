import type { RouteRollout } from '@perch/contracts';
import type { CallContext } from '@perch/processing';
import type { RequestHead } from '../http1/index.ts';
import type { Call } from './call.ts';
import type { Deployment } from './deployment.ts';

/** A copy of a live request on its way to the candidate; nobody waits for it. Also its processing's context. */
export class ShadowCall implements CallContext {
  readonly requestId: string;
  readonly endpoint: string;
  readonly arm: Deployment;
  readonly timeoutMs: number;
  readonly head: RequestHead;
  readonly pieces: Buffer[];
  /** Flags that count in the rollout. */
  readonly flags = new Set<string>();
  private readonly metrics: readonly string[];
  private limit: AbortSignal | undefined;

  constructor(live: Call, arm: Deployment, rollout: RouteRollout) {
    this.requestId = live.requestId;
    this.endpoint = live.endpoint;
    this.timeoutMs = live.timeoutMs;
    this.head = live.exchange.head;
    this.pieces = live.exchange.body;
    this.arm = arm;
    this.metrics = rollout.metrics;
  }

  get version(): number {
    return this.arm.target.version;
  }
  get signal(): AbortSignal {
    this.limit ??= AbortSignal.timeout(this.timeoutMs);
    return this.limit;
  }

  body(): Buffer {
    return this.pieces.length === 1 ? this.pieces[0]! : Buffer.concat(this.pieces);
  }

  flag(name: string): void {
    if (this.metrics.includes(name)) this.flags.add(name);
  }
  /** Metrics of a module tell of live requests alone. */
  observe(): void {}
  count(): void {}
}
