import { AppError, type RouteRollout, type Tensors } from '@perch/contracts';
import type { CallContext, ServeOptions } from '@perch/processing';
import type { RequestHead } from '../http1/index.ts';
import type { Call, CallHost } from './call.ts';
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
  readonly state: Record<string, unknown> = {};
  private readonly live: Call;
  private readonly host: CallHost | undefined;
  private readonly deadlineAt: number;
  private readonly metrics: readonly string[];
  private limit: AbortSignal | undefined;

  constructor(live: Call, arm: Deployment, rollout: RouteRollout) {
    this.live = live;
    this.host = live.host;
    this.deadlineAt = performance.now() + live.timeoutMs;
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
  remainingMs(): number {
    return Math.max(0, this.deadlineAt - performance.now());
  }
  get headers(): Readonly<Record<string, string>> {
    return this.live.headers;
  }
  /** A copy is judged by what its module answers, without what the module may write or ask elsewhere. */
  log(): void {}
  async infer(): Promise<Tensors> {
    throw new AppError('invalid', 'a copy of a request makes the one call of its model alone');
  }
  serve(endpoint: string, body: unknown, options?: ServeOptions): Promise<unknown> {
    return this.host!.serve(this.live, endpoint, body, options);
  }
  readonly streams = false;
  async stream(): Promise<void> {}
  /** Metrics of a module tell of live requests alone. */
  observe(): void {}
  count(): void {}
}
