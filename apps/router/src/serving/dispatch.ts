import { AppError } from '@perch/contracts';
import type { CallOptions } from '@perch/triton/inference';
import { assign } from './assign.ts';
import type { Call } from './call.ts';
import type { Deployment } from './deployment.ts';
import type { EvidenceLease } from './evidence-lease.ts';
import type { ModelTurn } from './model-turn.ts';
import { judgeFailure, type ServerVerdict } from './retry.decide.ts';
import { RetryBudget } from './retry-budget.ts';
import type { ServingTable, ServingTables } from './serving-tables.ts';
import { pickUpstream, type Upstream } from './upstream.ts';
import { WaitingRoom } from './waiting-room.ts';

type Attempt<T> = (upstream: Upstream, options: CallOptions) => Promise<T>;

const maxWaiting = 1_000;
/** So that one endpoint that is out for long leaves seats to the others. */
const maxWaitingEach = 750;
/** Three windows of the budget: so often what was spent is given back. */
const budgetPatienceMs = 31_000;
const notReady = (endpoint: string) =>
  new AppError('unavailable', `no server of ${endpoint} is ready`, { retryAfterMs: 1_000 });

/** Asked by a module's `ctx.infer`, or over `/v2` where the module takes no tensors of its own. */
const noModel = (endpoint: string) =>
  new AppError('invalid', `endpoint ${endpoint} has no model to ask: its processing module does all the work`);

/** Said where tensors are asked for: over `/v2`. */
const isPipeline = (endpoint: string) =>
  new AppError('invalid', `${endpoint} is a pipeline: it takes and answers JSON, at /serve/${endpoint} alone`);

const isStopped = (endpoint: string) =>
  new AppError('unavailable', `endpoint ${endpoint} is stopped`, { retryAfterMs: 30_000 });

/** Brings one request to a server that takes it: chooses arm and server, tries others, waits, gives up. */
export class Dispatch {
  readonly waiting = new WaitingRoom(maxWaiting, maxWaitingEach);
  retries = 0;
  private readonly tables: ServingTables;
  private readonly lease: EvidenceLease;
  private readonly budget = new RetryBudget();

  constructor(tables: ServingTables, lease: EvidenceLease) {
    this.tables = tables;
    this.lease = lease;
    tables.onSwap(() => this.waiting.wakeAll());
  }

  /** Told when another table is in force. */
  onSwap(listener: () => void): void {
    this.tables.onSwap(listener);
  }

  get ready(): boolean {
    return this.tables.current !== undefined;
  }

  /** Throws `unavailable` before there ever was a table. */
  table(): ServingTable {
    const table = this.tables.current;
    if (!table) throw new AppError('unavailable', 'this router has no routing table yet', { retryAfterMs: 1_000 });
    return table;
  }

  /**
   * Puts the call on an arm of the table in force; a promise when there is none now and it waits for a table that has one.
   * Throws `not_found` for a version that the endpoint does not serve, `unavailable` when it is stopped.
   */
  chooseArm(call: Call): Promise<void> | undefined {
    return this.hasArm(call) ? undefined : this.wait(call);
  }

  private hasArm(call: Call): boolean {
    const table = this.table();
    call.route = table.endpoints.get(call.endpoint) ?? call.route;
    if (call.route.route.pipeline !== undefined) throw isPipeline(call.endpoint);
    const target = assign(call, this.lease);
    const arm = target && table.deployments.get(target.deployment);
    if (arm) {
      call.moveTo(arm);
      return true;
    }
    if (call.route.route.stopped) throw isStopped(call.endpoint);
    if (call.pin === undefined || call.route.targets.length === 0) return false;
    const has = [...call.route.byVersion.keys()].sort((a, b) => b - a).join(', ');
    throw new AppError('not_found', `endpoint ${call.endpoint} does not serve version ${call.pin}; it serves ${has}`);
  }

  /**
   * Tries servers of the call's arm. Undefined: none of them is ready and the request did not run anywhere. Throws what
   * the client is to be told.
   */
  async run<T>(call: Call | ModelTurn, attempt: Attempt<T>): Promise<T | undefined> {
    const { arm } = call;
    if (arm.target.modelless) throw noModel(call.endpoint);
    let now = performance.now();
    this.budget.countRequest(now);
    for (;;) {
      if (now >= call.deadlineAt && call.waited) throw notReady(call.endpoint); // it ran nowhere
      const leftMs = call.leftMs(now);
      const timeoutMs = Math.ceil(call.first === undefined ? leftMs : call.first.remainingMs(now, leftMs));
      const upstream = pickUpstream(arm.upstreams, call.tried, now, Math.random);
      if (!upstream) return undefined;
      upstream.begin(now);
      try {
        const reply = await attempt(upstream, { timeoutMs, cancellation: call.exchange });
        this.ended(upstream, 'fine');
        return reply;
      } catch (error) {
        await this.failed(call, upstream, error);
        now = performance.now();
      }
    }
  }

  /** One try on one server, for nobody who waits. Undefined: none takes it. Throws what a client would be told. */
  async once<T>(arm: Deployment, endpoint: string, timeoutMs: number, attempt: Attempt<T>): Promise<T | undefined> {
    const upstream = pickUpstream(arm.upstreams, undefined, performance.now(), Math.random);
    if (!upstream) return undefined;
    upstream.begin(performance.now());
    try {
      const reply = await attempt(upstream, { timeoutMs });
      this.ended(upstream, 'fine');
      return reply;
    } catch (error) {
      const tried = { endpoint, tritonModel: upstream.model, idempotent: false, shortened: false };
      const verdict = judgeFailure(error, tried);
      this.ended(upstream, verdict.server);
      if (verdict.retry === 'free') return undefined;
      throw verdict.error;
    }
  }

  /** After `run` found no server: another arm of the endpoint (unless pinned), else waits for a server of any. */
  async elsewhere(call: Call): Promise<void> {
    if (call.events !== undefined) throw notReady(call.endpoint); // its client has the beginning of this arm's reply
    call.first?.passedOn(notReady(call.endpoint), performance.now());
    call.passed ??= new Set();
    call.passed.add(call.arm.target.deployment);
    const other = call.pin === undefined ? this.otherArm(call, call.passed) : undefined;
    if (other) call.moveTo(other);
    else await this.wait(call);
  }

  /** A deployment of the endpoint that was not asked yet; a candidate on trial is the last resort. */
  private otherArm({ route }: Call, passed: ReadonlySet<string>): Deployment | undefined {
    const { deployments } = this.table();
    let last: Deployment | undefined;
    for (const target of route.targets) {
      const other = passed.has(target.deployment) ? undefined : deployments.get(target.deployment);
      if (other && target !== route.rollout?.candidate) return other;
      last ??= other;
    }
    return last;
  }

  /** Until there is an arm again and it is worth trying. */
  private async wait(call: Call): Promise<void> {
    call.moveTo(undefined);
    call.waited = true;
    do {
      if (call.exchange.cancelled) throw new AppError('cancelled', 'the client went away');
      await this.waiting.wait(call.endpoint);
      if (performance.now() >= call.deadlineAt) throw notReady(call.endpoint);
    } while (!this.hasArm(call));
    call.passed = undefined;
    call.tried = undefined;
  }

  private async failed(call: Call | ModelTurn, upstream: Upstream, error: unknown): Promise<void> {
    const { endpoint, shortened } = call;
    const { idempotent } = call.route.route;
    const gone = call.exchange.cancelled;
    const verdict = judgeFailure(error, { endpoint, tritonModel: upstream.model, idempotent, shortened, gone });
    this.ended(upstream, verdict.server);
    call.first?.failed(verdict.error, performance.now());
    if (verdict.retry === 'no') throw verdict.error;
    if (verdict.retry === 'budgeted') await this.retryTurn(call, verdict.error);
    this.retries += 1;
    call.arm.stats.retries += 1;
    call.tried ??= new Set();
    call.tried.add(upstream);
  }

  /**
   * Resolves when the budget has room: a server that dies may take more requests with it than may be tried again at once.
   * Throws `error` when there is none in time, and at once for a request that was lost before.
   */
  private async retryTurn(call: Call | ModelTurn, error: AppError): Promise<void> {
    const until = call.tried
      ? 0
      : Math.min(call.deadlineAt, call.first?.cutAt ?? call.deadlineAt, performance.now() + budgetPatienceMs);
    while (!this.budget.take(performance.now())) {
      if (call.exchange.cancelled || performance.now() >= until) throw error;
      try {
        await this.waiting.wait(call.endpoint);
      } catch {
        throw error; // too many wait already
      }
    }
  }

  private ended(upstream: Upstream, verdict: ServerVerdict): void {
    if (upstream.end(verdict, performance.now())) this.waiting.wakeAll();
  }
}
