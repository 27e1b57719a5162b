import { AppError } from '@perch/contracts';
import { resolveServe } from '@perch/routing';
import type { InferenceTransport } from '@perch/triton/inference';
import type { HttpExchange, HttpReply } from './http1/index.ts';
import { Call } from './serving/call.ts';
import type { CustomStats } from './serving/custom-stats.ts';
import type { Dispatch } from './serving/dispatch.ts';
import { type JudgedReply, judgedNothing, judgedTensors } from './serving/judged-reply.ts';
import type { KeyRing } from './serving/key-ring.ts';
import type { ShadowCall } from './serving/shadow-call.ts';
import type { TrialPath } from './serving/trial-path.ts';
import { namedTensors, tensorsByName } from './tensors.ts';

/** `POST /serve/<endpoint>[/<version>]`: JSON in, JSON out, through the endpoint's processing. */
export class InferencePath {
  readonly shape = 'serve';

  constructor(
    private readonly dispatch: Dispatch,
    private readonly transport: InferenceTransport,
    private readonly keys: KeyRing,
    private readonly custom: CustomStats,
    private readonly trials: TrialPath,
  ) {}

  /** Finds the endpoint and checks the key, before the body is read. `path` is decoded and begins behind `/serve/`. */
  open(exchange: HttpExchange, path: string, requestId: string): Call {
    if (exchange.head.method !== 'POST') throw new AppError('invalid', `send POST, not ${exchange.head.method}`);
    const table = this.dispatch.table();
    const found = resolveServe(table, path);
    if (!found) throw new AppError('not_found', `there is no endpoint ${path}`);
    this.keys.check(table, exchange.head.headers['authorization'], found.route);
    return new Call(exchange, requestId, found.route, found.version, this.custom);
  }

  /** Chooses the arm, preprocesses, infers on a server that takes it, postprocesses. */
  answer(call: Call): Promise<HttpReply> {
    const choosing = this.dispatch.chooseArm(call);
    return choosing ? choosing.then(() => this.answerOnArm(call)) : this.answerOnArm(call);
  }

  private answerOnArm(call: Call): Promise<HttpReply> {
    return call.side === undefined ? this.attempt(call) : this.trials.answer(call, this);
  }

  async attempt(call: Call): Promise<HttpReply> {
    const contentType = call.exchange.head.headers['content-type'];
    for (;;) {
      const { arm } = call;
      const prepared = arm.processing.preprocess(call.body(), contentType, call);
      // most modules answer at once, and waiting for what is there costs a turn of its own
      const { inputs, carry } = prepared instanceof Promise ? await prepared : prepared;
      call.passedStage('preprocess');
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
      return jsonReply(json, call.replyLines);
    }
  }

  /** The same for a copy that nobody waits for. */
  async copy(call: ShadowCall): Promise<JudgedReply | undefined> {
    const { arm, endpoint, timeoutMs } = call;
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

/** `value` is a JSON value, or a Buffer that is JSON text already. */
function jsonReply(value: unknown, headerLines: string): HttpReply {
  const body = Buffer.isBuffer(value) ? [value] : (JSON.stringify(value) ?? 'null');
  return { status: 200, contentType: 'application/json', headerLines, body };
}
