import { AppError } from '@perch/contracts';
import { mayCall } from '@perch/routing';
import type { ForwardReply, ForwardRequest, HttpInfer, InferenceTransport } from '@perch/triton/inference';
import type { HttpExchange, HttpReply, RequestHead } from './http1/index.ts';
import type { InferencePath } from './inference.path.ts';
import { bodyOfTensors, type DeclaredTensors, readInfer, replyOfValue } from './oip-module.ts';
import { renameDocument, renameInferReply } from './oip-names.ts';
import { type OipAction, readOipTarget } from './oip-target.ts';
import type { Call } from './serving/call.ts';
import type { Dispatch } from './serving/dispatch.ts';
import { type JudgedReply, judgedForward } from './serving/judged-reply.ts';
import type { KeyRing } from './serving/key-ring.ts';
import { moduleTargets } from './serving/pipeline.store.ts';
import type { ShadowCall } from './serving/shadow-call.ts';
import type { TrialPath } from './serving/trial-path.ts';
import type { Upstream } from './serving/upstream.ts';

/** Headers of the request that mean something to the model server. */
const passedOn = ['content-type', 'content-encoding', 'inference-header-content-length', 'traceparent', 'tracestate'];

const json = (value: unknown, headerLines = ''): HttpReply => ({
  status: 200,
  contentType: 'application/json',
  headerLines,
  body: JSON.stringify(value),
});
const empty = (status: number): HttpReply => ({ status, contentType: '', headerLines: '', body: '' });

/** `declared`: a module that declares tensors of its own answers. */
type OipCall = Call & { action: OipAction; declared?: HttpInfer | undefined };

function requestOf(
  head: RequestHead,
  body: Buffer[],
  action: OipAction,
  { model, modelVersion }: Upstream,
): ForwardRequest {
  const headers: Record<string, string> = {};
  for (const name of passedOn) if (head.headers[name] !== undefined) headers[name] = head.headers[name];
  return { method: action === '/infer' ? 'POST' : 'GET', model, modelVersion, action, headers, body };
}

function declaredBy({ arm }: Pick<Call, 'arm'>): DeclaredTensors | undefined {
  const facts = arm.target.processing.module?.facts;
  return facts?.inputs && { inputs: facts.inputs, outputs: facts.outputs ?? arm.target.outputs };
}

/**
 * The Open Inference Protocol over HTTP: tensors pass as they are, processing is not applied, the split is. A module that
 * declares tensors of its own is what answers instead of the model.
 */
export class OipPath {
  readonly shape = 'oip';

  constructor(
    private readonly serve: InferencePath,
    private readonly dispatch: Dispatch,
    private readonly transport: InferenceTransport,
    private readonly keys: KeyRing,
    private readonly trials: TrialPath,
  ) {}

  /** Answers what needs no model server; undefined for the rest. `path` begins with `/v2`. */
  answerHere({ head }: HttpExchange, path: string): HttpReply | undefined {
    if (path === '/v2/health/live') return empty(200);
    if (path === '/v2/health/ready') return empty(this.dispatch.ready ? 200 : 400);
    if (path === '/v2' && head.method === 'GET')
      return json({
        name: 'perch',
        version: '0.1.0',
        extensions: ['binary_tensor_data', 'model_configuration', 'statistics'],
      });
    if (path === '/v2/repository/index' && head.method === 'POST')
      return json(this.index(head.headers['authorization']));
    return undefined;
  }

  /** Finds the endpoint and checks the key, before the body is read. */
  open(exchange: HttpExchange, path: string, requestId: string): OipCall {
    const { method, headers } = exchange.head;
    const target = path.startsWith('/v2/models/') ? readOipTarget(path.slice(11)) : undefined;
    if (!target) throw new AppError('not_found', 'Not Found');
    const wanted = target.action === '/infer' ? 'POST' : 'GET';
    if (method !== wanted)
      throw new AppError('invalid', `${target.action.slice(1) || 'metadata'} wants ${wanted}, not ${method}`);
    const table = this.dispatch.table();
    const route = table.endpoints.get(target.endpoint);
    if (!route) throw new AppError('not_found', `Request for unknown model: '${target.endpoint}' is not found`);
    this.keys.check(table, headers['authorization'], route);
    return Object.assign(this.serve.callOf(exchange, requestId, route, target.version), { action: target.action });
  }

  answer(call: OipCall): HttpReply | Promise<HttpReply> {
    if (call.action === '/ready' && call.route.route.pipeline) return this.pipelineReady(call);
    const choosing = this.dispatch.chooseArm(call);
    return choosing ? choosing.then(() => this.answerOnArm(call)) : this.answerOnArm(call);
  }

  /** A pipeline is ready when its modules are loaded; its endpoints have a readiness of their own. */
  private pipelineReady({ endpoint, route: { route } }: OipCall): HttpReply {
    const { deployments } = this.dispatch.table();
    for (const [node, { deployment }] of moduleTargets(endpoint, route))
      if (!deployments.has(deployment))
        throw new AppError('unavailable', `node ${node}: its module is not loaded`, { retryAfterMs: 1_000 });
    return empty(200);
  }

  private answerOnArm(call: OipCall): HttpReply | Promise<HttpReply> {
    if (call.action === '') return this.metadata(call);
    if (call.action === '/ready' && call.arm.target.modelless) return { ...empty(200), headerLines: call.replyLines };
    if (call.action === '/infer') call.declared = this.askModule(call);
    // what asks for readiness and statistics is no request of a rollout
    const onTrial = call.side !== undefined && call.action === '/infer';
    return onTrial ? this.trials.answer(call, this) : this.attempt(call);
  }

  /** Where a module declares its own tensors they become its body; undefined: tensors go to the model as they are. */
  private askModule(call: OipCall): HttpInfer | undefined {
    const inputs = declaredBy(call)?.inputs;
    if (!inputs) return undefined;
    const asked = readInfer(call.exchange, call.endpoint);
    call.given = { body: bodyOfTensors(asked.request.inputs, inputs), contentType: 'application/json' };
    return asked;
  }

  private async attemptModule(call: OipCall, asked: HttpInfer): Promise<HttpReply> {
    const { body, headerLines } = await this.serve.attempt(call);
    const text = typeof body === 'string' ? body : Buffer.concat(body as Uint8Array[]).toString('utf8');
    const reply = replyOfValue(JSON.parse(text), declaredBy(call)?.outputs ?? [], asked, call);
    return { ...reply, headerLines: headerLines + reply.headerLines };
  }

  async attempt(call: OipCall): Promise<HttpReply> {
    if (call.declared !== undefined) return this.attemptModule(call, call.declared);
    const { action, exchange } = call;
    const { head, body } = exchange;
    for (;;) {
      let from: Upstream | undefined;
      const answer = await this.dispatch.run(call, (upstream, options) => {
        from = upstream;
        return this.transport.forward(upstream.server, requestOf(head, body, action, upstream), options);
      });
      if (!answer || !from) {
        await this.dispatch.elsewhere(call);
        continue;
      }
      call.passedStage('infer');
      const { first } = call;
      if (first !== undefined && this.trials.replaces(call, first, judgedForward(answer, exchange))) continue;
      exchange.recyclable = answer.sent && call.tried === undefined && !first?.keepsBody;
      return this.replyOf(call, answer, from);
    }
  }

  /** The same for a copy that nobody waits for. */
  async copy(call: ShadowCall): Promise<JudgedReply | undefined> {
    const { arm, endpoint, timeoutMs, head, pieces: body } = call;
    // its tensors are a module's, not the model's
    if (declaredBy(call)) return undefined;
    const answer = await this.dispatch.once(arm, endpoint, timeoutMs, (upstream, options) =>
      this.transport.forward(upstream.server, requestOf(head, body, '/infer', upstream), options),
    );
    return answer && judgedForward(answer, { head, body });
  }

  private replyOf(call: OipCall, answer: ForwardReply, from: Upstream): HttpReply {
    const names = {
      tritonModel: from.model,
      tritonVersion: from.modelVersion || '1',
      endpoint: call.endpoint,
      version: call.version,
    };
    const headerLines = call.replyLines;
    if (call.action === '/ready') return { ...empty(200), headerLines };
    if (call.action !== '/infer')
      return { status: 200, contentType: 'application/json', headerLines, body: [renameDocument(answer.body, names)] };
    const { body, headerLength } = renameInferReply(answer, names);
    return {
      status: 200,
      contentType: answer.contentType,
      headerLines:
        headerLength === undefined ? headerLines : `${headerLines}inference-header-content-length: ${headerLength}\r\n`,
      body,
    };
  }

  /** From the table alone, so that it answers whatever else is down. */
  private metadata(call: Call): HttpReply {
    const { inputs, outputs } = declaredBy(call) ?? call.arm.target;
    const versions = [...call.route.byVersion.keys()].sort((a, b) => a - b).map(String);
    const tensors = (list: typeof inputs) => list.map(({ name, datatype, shape }) => ({ name, datatype, shape }));
    const value = {
      name: call.endpoint,
      versions,
      platform: 'perch',
      inputs: tensors(inputs),
      outputs: tensors(outputs),
    };
    return json(value, call.replyLines);
  }

  /** What the caller may use. Throws `unauthenticated` for an unknown key; without one, the public endpoints. */
  private index(authorization: string | undefined) {
    const table = this.dispatch.table();
    const key = authorization === undefined ? undefined : this.keys.find(table, authorization);
    const entries: { name: string; version: string; state: string; reason: string }[] = [];
    for (const { name, route, byVersion } of table.endpoints.values()) {
      if (route.access !== 'public' && !(key && mayCall(key, name))) continue;
      for (const version of byVersion.keys())
        entries.push({ name, version: String(version), state: 'READY', reason: '' });
    }
    return entries;
  }
}
