import { AppError } from '@perch/contracts';
import { type NodeTrace, type NodeTurn, readBody, runPipeline } from '@perch/processing/host';
import type { HttpReply } from './http1/index.ts';
import { Call, type CallHost } from './serving/call.ts';
import type { CustomStats } from './serving/custom-stats.ts';
import type { Deployment } from './serving/deployment.ts';
import type { Dispatch } from './serving/dispatch.ts';
import type { InnerCalls } from './serving/inner-calls.ts';
import { encodeBody, jsonOf, jsonText } from './serving/json-bytes.ts';
import type { PipelineStore, ServedPipeline } from './serving/pipeline.store.ts';
import type { PipelineStats } from './serving/pipeline-stats.ts';
import { childOf, traceOf } from './serving/trace-parent.ts';
import { TurnExchange } from './serving/turn-exchange.ts';

/** An endpoint that is late says so itself, which counts for its rollout; only then is it given up from here. */
const endpointGraceMs = 250;

interface PipelineParts {
  dispatch: Dispatch;
  pipelines: PipelineStore;
  nodeStats: PipelineStats;
  custom: CustomStats;
}

/** Requests to a pipeline: its nodes' endpoints and modules, side by side where they can, within the request's time. */
export class PipelinePath {
  private readonly parts: PipelineParts;
  private readonly host: CallHost;
  private readonly inner: () => InnerCalls;

  /** `inner`: how endpoints are asked; it is there once requests come. */
  constructor(parts: PipelineParts, host: CallHost, inner: () => InnerCalls) {
    this.parts = parts;
    this.host = host;
    this.inner = inner;
  }

  /** Throws what the client is to be told; the sentence names the pipeline and the node. */
  async answer(call: Call): Promise<HttpReply> {
    const { dispatch, pipelines } = this.parts;
    call.route = dispatch.table().endpoints.get(call.endpoint) ?? call.route;
    const served = pipelines.of(call.route);
    if (!served) throw new AppError('unavailable', `${call.endpoint} is no pipeline any more`, { retryAfterMs: 100 });
    if (call.pin !== undefined)
      throw new AppError('invalid', `${call.endpoint} is a pipeline and has no versions to ask for; ask for it without one`); // biome-ignore format: one sentence
    call.moveTo(served.arm);
    const modules = this.modulesOf(served);
    // they are not let go while the request may still come to them, whatever table is in force then
    for (const { gauge } of modules.values()) gauge.inFlight += 1;
    try {
      return await this.run(call, { ...served, loaded: modules });
    } finally {
      for (const { gauge } of modules.values()) gauge.inFlight -= 1;
    }
  }

  private modulesOf({ modules }: ServedPipeline): Map<string, Deployment> {
    const { deployments } = this.parts.dispatch.table();
    return new Map(
      [...modules].map(([node, target]) => {
        const deployment = deployments.get(target.deployment);
        if (deployment) return [node, deployment];
        throw new AppError('unavailable', `node ${node}: ${moduleText(target)} is not loaded`, { retryAfterMs: 1_000 });
      }),
    );
  }

  private async run(call: Call, served: Running): Promise<HttpReply> {
    const traces: NodeTrace[] | undefined = wantsTrace(call) ? [] : undefined;
    const trace = traceOf(call.exchange.head.headers['traceparent']);
    const given = readBody({}, call.body(), call.contentType);
    const body = given instanceof Promise ? await given : given;
    try {
      const request = { body, deadlineAt: call.deadlineAt, signal: call.signal };
      const value = await runPipeline(served.compiled, request, {
        now: () => performance.now(),
        graceMs: (node) => (served.loaded.has(node) ? 0 : endpointGraceMs),
        run: (turn) => this.runLimited(call, served, { ...turn, whole: turn.body === body }, childOf(trace)),
        ended: (one) => {
          this.parts.nodeStats.count(served.compiled.name, one);
          traces?.push(one);
        },
      });
      const headerLines = linesOf(served.arm, traces);
      return { status: 200, contentType: 'application/json', headerLines, body: jsonText(value) };
    } catch (error) {
      if (traces) call.arm = { ...served.arm, replyLines: linesOf(served.arm, traces) };
      throw error;
    }
  }

  private async runLimited(call: Call, served: Running, turn: Turn, trace: string): Promise<unknown> {
    const limit = this.parts.pipelines.limitOf(served, turn.node);
    const exchange = new TurnExchange(call, turn.signal, trace);
    if (!limit) return this.runTurn(call, served, turn, exchange);
    const deadlineAt = performance.now() + turn.timeoutMs;
    await limit.enter(turn.signal);
    try {
      const timeoutMs = deadlineAt - performance.now();
      if (timeoutMs <= 0) throw new AppError('timeout', `found no room within ${turn.timeoutMs} ms`);
      return await this.runTurn(call, served, { ...turn, timeoutMs }, exchange);
    } finally {
      limit.leave();
    }
  }

  private runTurn(call: Call, served: Running, turn: Turn, exchange: TurnExchange): Promise<unknown> {
    const { endpoint, version } = served.bound.nodes[turn.node]!;
    if (endpoint === undefined) return this.runModule(call, served, turn, exchange);
    const { requestId, depth } = call;
    const { bytes, contentType } = bodyOf(call, turn);
    const caller = { exchange, requestId, depth, deadlineAt: performance.now() + turn.timeoutMs, signal: turn.signal };
    return this.inner().serve(caller, endpoint, bytes, { contentType, ...(version === undefined ? {} : { version }) }, true); // biome-ignore format: one row reads better
  }

  private async runModule(call: Call, served: Running, turn: Turn, exchange: TurnExchange): Promise<unknown> {
    const deployment = served.loaded.get(turn.node)!;
    const inner = new Call(exchange, call.requestId, call.route, undefined, this.parts.custom);
    const { bytes, contentType } = bodyOf(call, turn);
    inner.host = this.host;
    inner.depth = call.depth + 1;
    inner.given = { body: bytes, contentType };
    inner.start(performance.now(), performance.now() + turn.timeoutMs);
    inner.moveTo(deployment);
    try {
      const { processing } = deployment;
      const { inputs, carry } = await processing.preprocess(bytes, contentType, inner);
      const outputs = processing.process ? await processing.process(inputs, carry, inner) : inputs;
      return jsonOf(await processing.postprocess(outputs, carry, inner));
    } finally {
      inner.moveTo(undefined);
    }
  }
}

/** With what its modules are for this request. */
type Running = ServedPipeline & { loaded: ReadonlyMap<string, Deployment> };

/** `whole`: its body is the pipeline's own, unchanged. */
type Turn = NodeTurn & { whole: boolean };

const moduleText = ({ processing: { module } }: Deployment['target']) => `module ${module?.name}@${module?.number}`;

/** What the client sent passes as it came: a file of a form need not be read and written anew. */
const bodyOf = (call: Call, turn: Turn): { bytes: Buffer; contentType: string } =>
  turn.whole ? { bytes: call.body(), contentType: call.contentType ?? 'application/json' } : encodeBody(turn.body);

const wantsTrace = ({ exchange: { head } }: Call): boolean =>
  head.headers['x-perch-trace'] === '1' || /(^|&)trace=1(&|$)/.test(head.query);

/** The trace as a Server-Timing header: each node with its milliseconds, when it began and what became of it. */
function linesOf({ replyLines }: Deployment, traces: readonly NodeTrace[] | undefined): string {
  if (!traces || traces.length === 0) return replyLines;
  const entries = traces.map(({ node, tookMs, startMs, outcome, runs }) => {
    const items = runs > 1 ? `;runs=${runs}` : '';
    return `${node};dur=${tookMs.toFixed(3)};start=${startMs.toFixed(3)};desc=${outcome}${items}`;
  });
  return `${replyLines}server-timing: ${entries.join(', ')}\r\n`;
}
