import { AppError, type ErrorCode, errorCodeOf, shownMessage } from '@perch/contracts';
import type { CompiledNode, CompiledPipeline } from './compiled-pipeline.ts';
import type { PickScope } from './pick-value.ts';

/** One run of a node: once, or once for each item of its `map`. */
export interface NodeTurn {
  node: string;
  body: unknown;
  /** Milliseconds that it may take. */
  timeoutMs: number;
  /** Aborts when the request is given up, this run is late, or another node failed. */
  signal: AbortSignal;
}

/** `skipped`: its `when` did not hold, or its list is empty; `fallback`: it failed and its fallback stands in. */
export type NodeOutcome = 'ok' | 'skipped' | 'fallback' | ErrorCode;

/** What became of a node. Times in milliseconds since the pipeline began. */
export interface NodeTrace {
  node: string;
  startMs: number;
  tookMs: number;
  outcome: NodeOutcome;
  /** Runs that it made: 1, or as many as its list has items. */
  runs: number;
}

export interface PipelineHost {
  /** Does a node's work. Throws what a client of it would be told. */
  run(turn: NodeTurn): Promise<unknown>;
  /** A monotonic clock, in milliseconds. */
  now(): number;
  /** How long it waits beyond a run's time for the run to say by itself that it was late. */
  graceMs?(node: string): number;
  /** Called as each node ends. */
  ended?(trace: NodeTrace): void;
}

export interface PipelineRequest {
  body: unknown;
  /** On the host's clock. */
  deadlineAt: number;
  /** Aborts when nobody waits any more. */
  signal: AbortSignal;
}

/**
 * Runs each node as soon as all that it waits for is there, side by side with the others, and answers the output.
 * The first node that fails without a fallback ends the others; the error names it and keeps its code.
 */
export async function runPipeline(
  pipeline: CompiledPipeline,
  request: PipelineRequest,
  host: PipelineHost,
): Promise<unknown> {
  return new PipelineRun(pipeline, request, host).answer();
}

interface Turned {
  value: unknown;
  outcome: NodeOutcome;
  runs: number;
}

class PipelineRun {
  private readonly pipeline: CompiledPipeline;
  private readonly request: PipelineRequest;
  private readonly host: PipelineHost;
  private readonly startedAt: number;
  private readonly results = new Map<string, unknown>();
  private readonly begun = new Set<string>();
  /** Gives up what is under way. */
  private readonly open = new Set<() => void>();
  private over = false;

  constructor(pipeline: CompiledPipeline, request: PipelineRequest, host: PipelineHost) {
    this.pipeline = pipeline;
    this.request = request;
    this.host = host;
    this.startedAt = host.now();
  }

  async answer(): Promise<unknown> {
    const { signal, body } = this.request;
    const end = () => this.end();
    if (signal.aborted) this.over = true;
    else signal.addEventListener('abort', end, { once: true });
    try {
      await new Promise<void>((resolve, reject) => this.advance(resolve, reject));
      return this.pipeline.output({ body, results: this.results });
    } catch (error) {
      throw error instanceof AppError ? error : withPlace(error, `pipeline ${this.pipeline.name}`);
    } finally {
      signal.removeEventListener('abort', end);
      this.end();
    }
  }

  private end(): void {
    this.over = true;
    for (const giveUp of this.open) giveUp();
  }

  /** Begins every node that has all it waits for. */
  private advance(done: () => void, failed: (error: unknown) => void): void {
    const { results, begun, pipeline } = this;
    if (results.size === pipeline.nodes.length) {
      done();
      return;
    }
    for (const node of pipeline.nodes) {
      if (begun.has(node.name) || !node.waits.every((name) => results.has(name))) continue;
      begun.add(node.name);
      this.runNode(node).then((value) => {
        if (this.over) return;
        results.set(node.name, value);
        this.advance(done, failed);
      }, failed);
    }
  }

  private async runNode(node: CompiledNode): Promise<unknown> {
    const startMs = this.host.now() - this.startedAt;
    const ended = (outcome: NodeOutcome, runs: number) =>
      this.host.ended?.({
        node: node.name,
        startMs,
        tookMs: this.host.now() - this.startedAt - startMs,
        outcome,
        runs,
      });
    try {
      const { value, outcome, runs } = await this.turn(node, { body: this.request.body, results: this.results });
      ended(outcome, runs);
      return value;
    } catch (error) {
      const named = withPlace(error, `pipeline ${this.pipeline.name}: node ${node.name}`);
      ended(named.code, 1);
      throw named;
    }
  }

  private async turn(node: CompiledNode, scope: PickScope): Promise<Turned> {
    if (node.when && !node.whenEach && !node.when(scope)) return { value: null, outcome: 'skipped', runs: 0 };
    if (!node.over) return this.once(node, scope);
    const items = node.over(scope);
    if (items === null) return { value: null, outcome: 'skipped', runs: 0 };
    if (!Array.isArray(items))
      throw new AppError('invalid', `map.over ${node.spec.map!.over} is no list but ${kindOf(items)}`);
    return this.each(node, items, scope);
  }

  /** The results in the order of the items, at most `concurrency` at once; the first failure ends it. */
  private async each(node: CompiledNode, items: readonly unknown[], scope: PickScope): Promise<Turned> {
    const values: unknown[] = new Array(items.length).fill(null);
    let next = 0;
    let fellBack = false;
    const worker = async () => {
      while (next < items.length && !this.over) {
        const index = next;
        next += 1;
        const own = { ...scope, item: items[index], index };
        if (node.whenEach && !node.when!(own)) continue;
        const turned = await this.once(node, own).catch((error) => {
          next = items.length;
          throw withPlace(error, `item ${index}`);
        });
        fellBack ||= turned.outcome === 'fallback';
        values[index] = turned.value;
      }
    };
    const workers = Math.min(items.length, node.spec.map!.concurrency);
    await Promise.all(Array.from({ length: workers }, worker));
    const outcome = items.length === 0 ? 'skipped' : fellBack ? 'fallback' : 'ok';
    return { value: values, outcome, runs: items.length };
  }

  private async once(node: CompiledNode, scope: PickScope): Promise<Turned> {
    try {
      return { value: await this.inTime(node, node.input(scope)), outcome: 'ok', runs: 1 };
    } catch (error) {
      // when all is given up, nothing stands in for anything
      if (!node.fallback || this.over) throw error;
      return { value: node.fallback(scope), outcome: 'fallback', runs: 1 };
    }
  }

  private inTime(node: CompiledNode, body: unknown): Promise<unknown> {
    const leftMs = this.request.deadlineAt - this.host.now();
    const timeoutMs = Math.ceil(Math.min(node.spec.timeoutMs ?? Number.POSITIVE_INFINITY, leftMs));
    if (timeoutMs <= 0) throw new AppError('timeout', 'no time is left for it');
    if (this.over) throw givenUp();
    const turn = new AbortController();
    return new Promise((resolve, reject) => {
      const fail = (error: AppError) => {
        reject(error);
        turn.abort(error);
      };
      const giveUp = () => fail(givenUp());
      const late = () => fail(new AppError('timeout', `gave no answer within ${timeoutMs} ms`));
      const timer = setTimeout(late, timeoutMs + (this.host.graceMs?.(node.name) ?? 0));
      this.open.add(giveUp);
      const over = () => {
        clearTimeout(timer);
        this.open.delete(giveUp);
      };
      const work = this.host.run({ node: node.name, body, timeoutMs, signal: turn.signal });
      work.then(resolve, reject).finally(over);
    });
  }
}

const givenUp = () => new AppError('cancelled', 'given up, because nobody waits for it any more');

const kindOf = (value: unknown) => (Buffer.isBuffer(value) ? 'bytes' : typeof value === 'object' ? 'an object' : `a ${typeof value}`); // biome-ignore format: one row reads better

/** The same code, with whom it happened to before the sentence. */
function withPlace(error: unknown, where: string): AppError {
  const retryAfterMs = error instanceof AppError ? error.retryAfterMs : undefined;
  return new AppError(errorCodeOf(error), `${where}: ${shownMessage(error)}`, {
    cause: error,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}
