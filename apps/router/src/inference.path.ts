import { AppError, type Tensors } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { ServeOptions } from '@perch/processing';
import { type CompiledRoute, resolveServe } from '@perch/routing';
import type { InferenceTransport } from '@perch/triton/inference';
import type { HttpExchange, HttpReply } from './http1/index.ts';
import { PipelinePath } from './pipeline.path.ts';
import { Branches } from './serving/branches.ts';
import { Call, type CallHost, type LogLevel } from './serving/call.ts';
import type { CustomStats } from './serving/custom-stats.ts';
import type { Dispatch } from './serving/dispatch.ts';
import { observeFields } from './serving/field-metrics.ts';
import { type AnswerCall, InnerCalls } from './serving/inner-calls.ts';
import { type JudgedReply, judgedNothing, judgedTensors } from './serving/judged-reply.ts';
import type { KeyRing } from './serving/key-ring.ts';
import { ModelTurn } from './serving/model-turn.ts';
import type { PipelineStore } from './serving/pipeline.store.ts';
import type { PipelineStats } from './serving/pipeline-stats.ts';
import type { ShadowCall } from './serving/shadow-call.ts';
import type { TrialPath } from './serving/trial-path.ts';
import { namedTensors, tensorsByName } from './tensors.ts';

/** `POST /serve/<endpoint>[/<version>]`: JSON in, JSON out, through the endpoint's processing. */
export class InferencePath implements CallHost {
  readonly shape = 'serve';
  private readonly dispatch: Dispatch;
  private readonly transport: InferenceTransport;
  private readonly keys: KeyRing;
  private readonly custom: CustomStats;
  private readonly trials: TrialPath;
  private readonly logger: Logger;
  private readonly pipelines: PipelinePath;
  private inner: InnerCalls | undefined;

  constructor(parts: InferenceParts) {
    this.dispatch = parts.dispatch;
    this.transport = parts.transport;
    this.keys = parts.keys;
    this.custom = parts.custom;
    this.trials = parts.trials;
    this.logger = parts.logger;
    this.pipelines = new PipelinePath(parts, this, () => this.inner!);
  }

  /** How calls that modules make are answered. */
  answersInner(answer: AnswerCall): void {
    const { dispatch, keys, custom } = this;
    this.inner = new InnerCalls({ dispatch, keys, custom, host: this, answer });
  }

  /** Finds the endpoint and checks the key, before the body is read. `path` is decoded and begins behind `/serve/`. */
  open(exchange: HttpExchange, path: string, requestId: string): Call {
    if (exchange.head.method !== 'POST') throw new AppError('invalid', `send POST, not ${exchange.head.method}`);
    const table = this.dispatch.table();
    const found = resolveServe(table, path);
    if (!found) throw new AppError('not_found', `there is no endpoint ${path}`);
    this.keys.check(table, exchange.head.headers['authorization'], found.route);
    return this.callOf(exchange, requestId, found.route, found.version);
  }

  /** A request that processing may be applied to, whatever protocol it came by. */
  callOf(exchange: HttpExchange, requestId: string, route: CompiledRoute, version: number | undefined): Call {
    const call = new Call(exchange, requestId, route, version, this.custom);
    call.host = this;
    return call;
  }

  /** One call of the model from within a module. Throws `NoServer` where no server of the arm is ready. */
  async infer(call: Call, inputs: Tensors): Promise<Tensors> {
    const branch = Branches.of(call.exchange).add();
    try {
      const tensors = namedTensors(inputs);
      const turn = new ModelTurn(call, branch);
      const answer = await this.dispatch.run(turn, ({ server, model, modelVersion }, options) =>
        this.transport.infer(server, { modelName: model, modelVersion, inputs: tensors }, options),
      );
      if (!answer) throw new NoServer();
      return tensorsByName(answer);
    } finally {
      branch.done();
    }
  }

  serve(call: Call, endpoint: string, body: unknown, options?: ServeOptions): Promise<unknown> {
    return this.inner!.serve(call, endpoint, body, options);
  }

  log({ requestId, endpoint, version }: Call, level: LogLevel, message: string, fields?: Record<string, unknown>) {
    this.logger[level]('module', { requestId, endpoint, version, message, ...fields });
  }

  /** Chooses the arm, preprocesses, infers on a server that takes it, postprocesses. */
  answer(call: Call): Promise<HttpReply> {
    if (call.route.route.pipeline !== undefined) return this.pipelines.answer(call);
    const choosing = this.dispatch.chooseArm(call);
    return choosing ? choosing.then(() => this.answerOnArm(call)) : this.answerOnArm(call);
  }

  private answerOnArm(call: Call): Promise<HttpReply> {
    return call.side === undefined ? this.attempt(call) : this.trials.answer(call, this);
  }

  async attempt(call: Call): Promise<HttpReply> {
    for (;;) {
      const { arm } = call;
      const prepared = arm.processing.preprocess(call.body(), call.contentType, call);
      // most modules answer at once, and waiting for what is there costs a turn of its own
      const { inputs, carry } = prepared instanceof Promise ? await prepared : prepared;
      call.passedStage('preprocess');
      if (arm.processing.process !== undefined) {
        const reply = await this.processed(call, inputs, carry);
        if (reply) return reply;
        continue;
      }
      const tensors = namedTensors(inputs);
      const answer = await this.dispatch.run(call, ({ server, model, modelVersion }, options) =>
        this.transport.infer(server, { modelName: model, modelVersion, inputs: tensors }, options),
      );
      if (!answer) {
        await this.dispatch.elsewhere(call);
        continue;
      }
      call.passedStage('infer');
      if (call.first !== undefined && this.trials.replaces(call, call.first, judgedTensors(answer))) continue;
      const value = arm.processing.postprocess(tensorsByName(answer), carry, call);
      const json = value instanceof Promise ? await value : value;
      call.passedStage('postprocess');
      if (json === undefined && call.first !== undefined && this.trials.replaces(call, call.first, judgedNothing))
        continue;
      return jsonReply(json, call);
    }
  }

  /** An attempt whose module does the work by itself. Undefined: no server was ready, and the call is elsewhere now. */
  private async processed(call: Call, inputs: Tensors, carry: unknown): Promise<HttpReply | undefined> {
    const { processing } = call.arm;
    let outputs: unknown;
    try {
      outputs = await processing.process!(inputs, carry, call);
    } catch (error) {
      if (!(error instanceof NoServer)) throw error;
      await this.dispatch.elsewhere(call);
      return undefined;
    }
    call.passedStage('infer');
    const json = await processing.postprocess(outputs, carry, call);
    call.passedStage('postprocess');
    return jsonReply(json, call);
  }

  /** The same for a copy that nobody waits for. */
  async copy(call: ShadowCall): Promise<JudgedReply | undefined> {
    const { arm, endpoint, timeoutMs } = call;
    // what a module makes of several calls is not compared
    if (arm.processing.process !== undefined) return undefined;
    const prepared = arm.processing.preprocess(call.body(), call.head.headers['content-type'], call);
    const { inputs, carry } = prepared instanceof Promise ? await prepared : prepared;
    const tensors = namedTensors(inputs);
    const answer = await this.dispatch.once(arm, endpoint, timeoutMs, ({ server, model, modelVersion }, options) =>
      this.transport.infer(server, { modelName: model, modelVersion, inputs: tensors }, options),
    );
    if (!answer) return undefined;
    try {
      const value = await arm.processing.postprocess(tensorsByName(answer), carry, call);
      return value === undefined ? judgedNothing : judgedTensors(answer);
    } catch (cause) {
      throw new AppError('upstream', 'the module failed on what the model answered', { cause });
    }
  }
}

interface InferenceParts {
  dispatch: Dispatch;
  transport: InferenceTransport;
  keys: KeyRing;
  custom: CustomStats;
  trials: TrialPath;
  logger: Logger;
  pipelines: PipelineStore;
  nodeStats: PipelineStats;
}

/** Told to a module whose call of the model found no server; the request then goes elsewhere. */
class NoServer extends AppError {
  constructor() {
    super('unavailable', 'no server of this version is ready', { retryAfterMs: 1_000 });
  }
}

/** `value` is a JSON value, or a Buffer that is JSON text already. */
function jsonReply(value: unknown, call: Call): HttpReply {
  const { metrics } = call.route.route;
  if (metrics !== undefined) observeFields(call, metrics, value, performance.now() - call.exchange.startedAt);
  const body = Buffer.isBuffer(value) ? [value] : (JSON.stringify(value) ?? 'null');
  return { status: 200, contentType: 'application/json', headerLines: call.replyLines, body };
}
