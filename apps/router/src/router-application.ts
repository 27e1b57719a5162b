import { AppError } from '@perch/contracts';
import type { HttpApplication, HttpExchange, HttpReply } from './http1/index.ts';
import type { InferencePath } from './inference.path.ts';
import type { OipPath } from './oip.path.ts';
import { type OpenAiPath, OpenAiPending } from './openai.path.ts';
import type { Call } from './serving/call.ts';
import { armLines } from './serving/deployment.ts';
import { type ErrorShape, errorReply } from './serving/error-reply.ts';
import { requestIdOf } from './serving/request-id.ts';
import type { RouterStats } from './serving/router-stats.ts';
import type { ShadowedPath } from './serving/shadow.ts';
import type { TrialPath } from './serving/trial-path.ts';

/** Everything that is not inference: health, metrics. */
export interface OtherPaths {
  answer(exchange: HttpExchange): Promise<HttpReply>;
}

interface Paths {
  serve: InferencePath;
  oip: OipPath;
  openai: OpenAiPath;
}

interface Pending {
  call: Call;
  path: ShadowedPath & { shape: ErrorShape; answer(call: Call): HttpReply | Promise<HttpReply> };
}

const otherBodyBytes = 65_536;
const noArm = armLines('none', 'none');

/** Sorts requests by path, and gives every reply its request id, version and arm. */
export class RouterApplication implements HttpApplication {
  private readonly serve: InferencePath;
  private readonly oip: OipPath;
  private readonly openai: OpenAiPath;
  private readonly others: OtherPaths;
  private readonly stats: RouterStats;
  private readonly trials: TrialPath;

  constructor(paths: Paths, others: OtherPaths, stats: RouterStats, trials: TrialPath) {
    this.serve = paths.serve;
    this.oip = paths.oip;
    this.openai = paths.openai;
    this.others = others;
    this.stats = stats;
    this.trials = trials;
    this.serve.answersInner((call) => this.inner(call));
  }

  admit(exchange: HttpExchange): number | HttpReply {
    const { path, headers } = exchange.head;
    const isServe = path.startsWith('/serve/');
    if (!isServe && path.startsWith('/v1/')) return this.admitOpenAi(exchange, path);
    if (!isServe && path !== '/v2' && !path.startsWith('/v2/')) return otherBodyBytes;
    const requestId = requestIdOf(headers['x-request-id']);
    const shape = isServe ? 'serve' : 'oip';
    try {
      const call = isServe
        ? this.serve.open(exchange, decodePath(path.slice(7)), requestId)
        : (this.oip.answerHere(exchange, path) ?? this.oip.open(exchange, path, requestId));
      if ('status' in call) return { ...call, headerLines: call.headerLines + noArm + idLine(requestId) };
      exchange.context = { call, path: isServe ? this.serve : this.oip } as Pending;
      return call.route.route.maxBodyBytes;
    } catch (error) {
      return this.refused(error, shape, requestId);
    }
  }

  private admitOpenAi(exchange: HttpExchange, path: string): number | HttpReply {
    const requestId = requestIdOf(exchange.head.headers['x-request-id']);
    try {
      const admitted = this.openai.admit(exchange, decodePath(path), requestId);
      if ('status' in admitted) return { ...admitted, headerLines: noArm + idLine(requestId) };
      exchange.context = admitted.pending;
      return admitted.limit;
    } catch (error) {
      return this.refused(error, 'openai', requestId);
    }
  }

  /** The endpoint is known once the body is there. */
  private answerOpenAi(exchange: HttpExchange, pending: OpenAiPending): void {
    try {
      const call = this.openai.open(exchange, pending);
      void this.infer(exchange, { call, path: this.openai as Pending['path'] });
    } catch (error) {
      exchange.reply(this.refused(error, 'openai', pending.requestId));
    }
  }

  tooLarge(exchange: HttpExchange, limitBytes: number): HttpReply {
    const { context } = exchange;
    if (context instanceof OpenAiPending) {
      const error = new AppError(
        'too_large',
        `the body is larger than the ${limitBytes} bytes that any endpoint takes`,
      );
      return this.refused(error, 'openai', context.requestId);
    }
    const pending = context as Pending | undefined;
    const what = pending
      ? `the body is larger than the ${limitBytes} bytes that ${pending.call.endpoint} takes`
      : 'body too large';
    const error = new AppError('too_large', what);
    return this.refused(error, pending?.path.shape ?? 'serve', pending?.call.requestId ?? '');
  }

  answer(exchange: HttpExchange): void {
    const { context } = exchange;
    if (context instanceof OpenAiPending) this.answerOpenAi(exchange, context);
    else if (context) void this.infer(exchange, context as Pending);
    else
      void this.others.answer(exchange).then(
        (reply) => exchange.reply(reply),
        (error) => exchange.reply(this.refused(error, 'serve', requestIdOf(exchange.head.headers['x-request-id']))),
      );
  }

  private async infer(exchange: HttpExchange, { call, path }: Pending): Promise<void> {
    const startedAt = performance.now();
    call.start(startedAt);
    let arm = call.arm;
    try {
      const reply = await path.answer(call);
      arm = call.arm;
      reply.headerLines += idLine(call.requestId);
      call.respond(reply);
      arm.stats.count('ok', performance.now() - startedAt);
    } catch (caught) {
      const error = exchange.cancelled ? new AppError('cancelled', 'the client went away') : caught;
      arm = call.arm;
      this.stats.countFailure(error, arm?.stats, call, performance.now() - startedAt);
      const lines = (arm ? call.replyLines : noArm) + idLine(call.requestId);
      if (call.events) call.events.fail(error);
      else exchange.reply(errorReply(error, path.shape, call.requestId, lines));
    } finally {
      call.moveTo(undefined);
      if (call.first !== undefined) this.trials.replied(call, call.first, path);
    }
  }

  /** The same for a call of another call. Throws what its caller is to be told. */
  private async inner(call: Call): Promise<HttpReply> {
    const startedAt = performance.now();
    try {
      const reply = await this.serve.answer(call);
      call.arm.stats.count('ok', performance.now() - startedAt);
      return reply;
    } catch (caught) {
      const error = call.exchange.cancelled ? new AppError('cancelled', 'the client went away') : caught;
      this.stats.countFailure(error, call.arm?.stats, call, performance.now() - startedAt);
      throw error;
    } finally {
      call.moveTo(undefined);
      if (call.first !== undefined) this.trials.replied(call, call.first, this.serve);
    }
  }

  private refused(error: unknown, shape: ErrorShape, requestId: string): HttpReply {
    this.stats.countRefusal(error);
    return errorReply(error, shape, requestId, noArm + idLine(requestId));
  }
}

const idLine = (requestId: string): string => `x-request-id: ${requestId}\r\n`;

function decodePath(path: string): string {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    throw new AppError('invalid', 'the path is not properly percent-encoded');
  }
}
