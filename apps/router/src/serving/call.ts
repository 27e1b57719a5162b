import { AppError, type Tensors } from '@perch/contracts';
import type { CallContext, ServeOptions } from '@perch/processing';
import { isShownHeader } from '@perch/processing/host';
import { type Chance, type CompiledRoute, readVersion } from '@perch/routing';
import type { HttpExchange, HttpReply } from '../http1/index.ts';
import type { CustomStats } from './custom-stats.ts';
import type { Deployment } from './deployment.ts';
import type { EvidenceTrial } from './evidence-trial.ts';
import type { FirstAttempt } from './first-attempt.ts';
import { asksForEvents, type EventFormat, plainEvents, ReplyEvents } from './reply-events.ts';
import type { Stage } from './request-stats.ts';
import { stages } from './request-stats.ts';
import type { Upstream } from './upstream.ts';

function readTimeoutMs(text: string | undefined, limitMs: number): number {
  if (text === undefined) return limitMs;
  const wanted = /^[0-9]{1,9}$/.test(text) ? Number(text) : 0;
  if (wanted < 1)
    throw new AppError('invalid', 'header x-request-timeout-ms wants a whole number of milliseconds above 0');
  return Math.min(wanted, limitMs);
}

function readPin(fromPath: number | undefined, text: string | undefined): number | undefined {
  if (text === undefined) return fromPath;
  const version = readVersion(text);
  if (version === undefined) throw new AppError('invalid', 'header x-perch-version wants a version number');
  if (fromPath !== undefined && fromPath !== version)
    throw new AppError('invalid', `the path asks for version ${fromPath}, header x-perch-version for ${version}`);
  return version;
}

/** Which side of a rollout a request is on. */
export type Side = 'stable' | 'candidate';

/** What a call's processing may ask for beyond the call itself. */
export interface CallHost {
  infer(call: Call, inputs: Tensors): Promise<Tensors>;
  serve(call: Call, endpoint: string, body: unknown, options?: ServeOptions): Promise<unknown>;
  log(call: Call, level: LogLevel, message: string, fields?: Record<string, unknown>): void;
}
export type LogLevel = Parameters<CallContext['log']>[0];

/** One request on its way: what it asked for, where it is now, and how much time is left. Also its processing's context. */
export class Call implements CallContext, Chance {
  readonly exchange: HttpExchange;
  readonly requestId: string;
  readonly pin: number | undefined;
  readonly timeoutMs: number;
  readonly shortened: boolean;
  route: CompiledRoute;
  /** Its chance, drawn once: another look at the same table gives the same arm. */
  readonly draw = Math.random();
  /** Of its sticky key; -1 without one. */
  bucket = -1;
  /** The candidate got nothing when this was put on its arm. */
  lapsed = false;
  /** The side of the rollout it was put on; undefined without a rollout and for a pinned version. */
  side: Side | undefined;
  /** Says how its first attempt ended, where a candidate is on trial. */
  trial: EvidenceTrial | undefined;
  /** What becomes of that attempt; there with `trial`. */
  first: FirstAttempt | undefined;
  /** The deployment it is on; set before its processing is called. */
  arm!: Deployment;
  startedAt = 0;
  deadlineAt = 0;
  /** Servers and deployments that did not take it in this round. */
  tried: Set<Upstream> | undefined;
  passed: Set<string> | undefined;
  /** It has found no server ready at least once. */
  waited = false;
  host: CallHost | undefined;
  /** In place of the client's own body. */
  given: { body: Buffer; contentType: string } | undefined;
  /** Names that its module observed, where the endpoint has metrics of its own. */
  observed: Set<string> | undefined;
  /** Calls around this one: 0 for a client's own. */
  depth = 0;
  /** Its client speaks another protocol's events. */
  format: EventFormat | undefined;
  /** Its reply as far as it was sent; once there, no other arm may answer. */
  events: ReplyEvents | undefined;
  private asked: boolean | undefined;
  private own: Record<string, unknown> | undefined;
  private readonly custom: CustomStats;
  private mark: number;

  /** Throws `invalid` for headers that cannot be understood. */
  constructor(
    exchange: HttpExchange,
    requestId: string,
    route: CompiledRoute,
    version: number | undefined,
    custom: CustomStats,
  ) {
    const { headers } = exchange.head;
    this.exchange = exchange;
    this.requestId = requestId;
    this.route = route;
    this.custom = custom;
    this.pin = readPin(version, headers['x-perch-version']);
    this.timeoutMs = readTimeoutMs(headers['x-request-timeout-ms'], route.route.timeoutMs);
    this.shortened = this.timeoutMs < route.route.timeoutMs;
    this.mark = exchange.startedAt;
  }

  get endpoint(): string {
    return this.route.name;
  }
  get version(): number {
    return this.arm.target.version;
  }
  get contentType(): string | undefined {
    return this.given === undefined ? this.exchange.head.headers['content-type'] : this.given.contentType;
  }
  get signal(): AbortSignal {
    return this.exchange.signal;
  }

  /** Header lines of a reply by the deployment it is on. */
  get replyLines(): string {
    return this.first === undefined ? this.arm.replyLines : this.first.linesOf(this.arm);
  }

  /** The body is there: from now on the time runs, until `latest` at most. */
  start(now: number, latest = Number.POSITIVE_INFINITY): void {
    this.startedAt = now;
    this.deadlineAt = Math.min(now + this.timeoutMs, latest);
    this.mark = now;
  }

  /** Throws `timeout` when none is left. */
  leftMs(now: number): number {
    const left = this.deadlineAt - now;
    if (left <= 0) throw new AppError('timeout', `${this.endpoint} gave no answer within ${this.timeoutMs} ms`);
    return left;
  }

  /** What its processing gets: the client's body, or what another protocol's request means to a module. */
  body(): Buffer {
    if (this.given !== undefined) return this.given.body;
    const { body } = this.exchange;
    return body.length === 1 ? body[0]! : Buffer.concat(body);
  }

  /** Counts the request as in hand on a deployment, and no longer on the one before. */
  moveTo(arm: Deployment | undefined): void {
    if (this.arm) this.arm.gauge.inFlight -= 1;
    if (arm) arm.gauge.inFlight += 1;
    this.arm = arm as Deployment;
  }

  /** Begins anew on another deployment, not to come back to `left`. */
  restartOn(arm: Deployment, left: string): void {
    this.tried = undefined;
    this.passed = new Set([left]);
    this.moveTo(arm);
  }

  /** Books the time since the last mark. */
  passedStage(stage: Stage): void {
    const now = performance.now();
    this.arm.stats.stageMs[stages.indexOf(stage)]! += now - this.mark;
    this.mark = now;
  }

  remainingMs(): number {
    return Math.max(0, this.deadlineAt - performance.now());
  }
  get headers(): Readonly<Record<string, string>> {
    const shown: Record<string, string> = {};
    const { headers } = this.exchange.head;
    for (const name in headers) if (isShownHeader(name)) shown[name] = headers[name]!;
    return shown;
  }
  get state(): Record<string, unknown> {
    this.own ??= {};
    return this.own;
  }
  log(level: LogLevel, message: string, fields?: Record<string, unknown>): void {
    this.host?.log(this, level, message, fields);
  }
  infer(inputs: Tensors): Promise<Tensors> {
    return this.host!.infer(this, inputs);
  }
  serve(endpoint: string, body: unknown, options?: ServeOptions): Promise<unknown> {
    return this.host!.serve(this, endpoint, body, options);
  }
  get streams(): boolean {
    this.asked ??= this.format !== undefined || asksForEvents(this);
    return this.asked;
  }
  async stream(event: unknown): Promise<void> {
    if (this.streams) await this.beginEvents().send(event);
  }
  /** Sends the reply: as the last event where it came in events. */
  respond(reply: HttpReply): void {
    if (this.format !== undefined) this.beginEvents();
    if (this.events) this.events.finish(reply.body);
    else this.exchange.reply(reply);
  }
  /** The head of its reply goes out, unless it has. */
  beginEvents(): ReplyEvents {
    this.events ??= new ReplyEvents(this, this.format ?? plainEvents);
    return this.events;
  }

  observe(name: string, value: number | string): void {
    const { metrics } = this.route.route;
    if (metrics !== undefined) {
      this.observed ??= new Set();
      this.observed.add(name);
    }
    this.custom.observe(this.arm.stats, name, value, metrics?.variables[name]);
  }
  count(name: string, by = 1): void {
    this.custom.count(this.arm.stats, name, by);
  }
  flag(name: string): void {
    this.custom.flag(this.arm.stats, name);
    this.first?.flag(name);
  }
}
