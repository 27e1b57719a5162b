import { innerMessage } from '@perch/contracts';
import type { ConfigQueuePolicy, ModelConfig, ModelStatistics } from '@perch/triton/control';
import {
  type InferRequest,
  type InferResponse,
  type NamedTensor,
  requestTag,
  ServingFault,
} from '@perch/triton/server';
import { type QueuedWork, RequestQueue } from '../batching/request-queue.ts';
import { joinRows, splitRows } from '../batching/tensor-rows.ts';
import type { Session } from '../session/onnx-session.ts';
import { checkRequest } from './request-check.ts';
import { type DeclaredModel, declaredModel, fillShape } from './signature.ts';
import { type FailureReason, VersionStatistics } from './version-statistics.ts';

interface Work extends QueuedWork {
  request: InferRequest;
  resolve: (outputs: NamedTensor[]) => void;
  reject: (error: ServingFault) => void;
  startedAtMs: number;
}

export interface ModelVersionOptions {
  name: string;
  version: string;
  /** Complete: inputs and outputs are there. */
  config: ModelConfig;
  /** One session an instance; at least one. */
  sessions: Session[];
  /** Told of every failed request. */
  onFailure: (reason: FailureReason) => void;
}

const policyTimeoutMs = (policy: ConfigQueuePolicy | undefined, request: InferRequest): number | undefined => {
  if (policy?.timeout_action === 'DELAY') return undefined;
  const ownUs = policy?.default_timeout_microseconds ?? 0;
  const askedUs = request.parameters?.['timeout'];
  const overrides = policy?.allow_timeout_override && typeof askedUs === 'number' && askedUs > 0;
  const us = overrides && (ownUs === 0 || askedUs < ownUs) ? askedUs : ownUs;
  return us > 0 ? us / 1_000 : undefined;
};

/** One loaded version: checks requests, batches them onto its instances, counts. */
export class ModelVersion {
  readonly declared: DeclaredModel;
  readonly statistics = new VersionStatistics();
  private readonly options: ModelVersionOptions;
  private readonly outputNames: string[];
  private readonly queue: RequestQueue<Work, Session>;

  constructor(options: ModelVersionOptions) {
    this.options = options;
    this.declared = declaredModel(options.config);
    this.outputNames = this.declared.outputs.map(({ name }) => name);
    const { dynamic_batching: batching } = options.config;
    const { maxBatchSize } = this.declared;
    this.queue = new RequestQueue<Work, Session>({
      policy: {
        dynamic: batching !== undefined && maxBatchSize > 1,
        maxRows: maxBatchSize,
        preferredRows: batching?.preferred_batch_size ?? [],
        maxDelayMs: (batching?.max_queue_delay_microseconds ?? 0) / 1_000,
      },
      instances: options.sessions,
      maxQueued: batching?.default_queue_policy?.max_queue_size ?? 0,
      execute: (session, batch) => this.execute(session, batch),
      onExpired: (work) => this.fail(work, 'REJECTED', new ServingFault('unavailable', 'Request timeout expired')),
    });
  }

  get config(): ModelConfig {
    return this.options.config;
  }
  get pendingCount(): number {
    return this.queue.length;
  }

  snapshot(): ModelStatistics {
    return this.statistics.snapshot(this.options.name, this.options.version);
  }

  async infer(request: InferRequest): Promise<InferResponse> {
    const { rows, key } = checkRequest(this.declared, request);
    const nowMs = performance.now();
    const timeoutMs = policyTimeoutMs(this.config.dynamic_batching?.default_queue_policy, request);
    const outputs = await new Promise<NamedTensor[]>((resolve, reject) => {
      const expiresAtMs = timeoutMs === undefined ? undefined : nowMs + timeoutMs;
      const work: Work = { rows, key, queuedAtMs: nowMs, startedAtMs: nowMs, expiresAtMs, request, resolve, reject };
      if (this.queue.push(work)) return;
      this.options.onFailure('REJECTED');
      reject(new ServingFault('unavailable', `${requestTag(request.id)}Exceeds maximum queue size`));
    });
    const wanted = request.outputs?.length ? new Set(request.outputs.map(({ name }) => name)) : undefined;
    return {
      modelName: this.options.name,
      modelVersion: this.options.version,
      ...(request.id ? { id: request.id } : {}),
      outputs: wanted ? outputs.filter(({ name }) => wanted.has(name)) : outputs,
    };
  }

  /** Finishes what was accepted, then gives the sessions back. The caller sends nothing more. */
  async close(): Promise<void> {
    await this.queue.drain();
    await Promise.all(this.options.sessions.map((session) => session.close()));
  }

  private fail(work: Work, reason: FailureReason, fault: ServingFault): void {
    this.statistics.failed(performance.now() - work.queuedAtMs);
    this.options.onFailure(reason);
    work.reject(fault);
  }

  private feedsOf(batch: readonly Work[]): NamedTensor[] {
    const given = batch[0]!.request.inputs;
    return given.map(({ name }, index) => {
      const tensors = batch.map(({ request }) => {
        const tensor = request.inputs[index]!;
        return tensor.name === name ? tensor : request.inputs.find((input) => input.name === name)!;
      });
      return this.reshaped(joinRows(tensors), 'inputs');
    });
  }

  /** The tensor in the shape the graph sees (inputs), or back in the declared one (outputs). */
  private reshaped(tensor: NamedTensor, kind: 'inputs' | 'outputs'): NamedTensor {
    const declared = this.declared[kind].find(({ name }) => name === tensor.name);
    if (!declared?.reshape) return tensor;
    const lead = this.declared.maxBatchSize > 0 ? 1 : 0;
    const [from, to] = kind === 'inputs' ? [declared.dims, declared.reshape] : [declared.reshape, declared.dims];
    const inner = fillShape(to, from, tensor.shape.slice(lead));
    return { ...tensor, shape: [...tensor.shape.slice(0, lead), ...inner] };
  }

  private async execute(session: Session, batch: Work[]): Promise<void> {
    const beganMs = performance.now();
    for (const work of batch) work.startedAtMs = beganMs;
    try {
      const feeds = this.feedsOf(batch);
      const inputMs = performance.now() - beganMs;
      const results = (await session.run(feeds, this.outputNames)).map((tensor) => this.reshaped(tensor, 'outputs'));
      const inferMs = performance.now() - beganMs - inputMs;
      const pieces = this.piecesOf(results, batch);
      const endMs = performance.now();
      const rows = this.declared.maxBatchSize > 0 ? batch.reduce((sum, work) => sum + work.rows, 0) : 1;
      const times = { inputMs, inferMs, outputMs: endMs - beganMs - inputMs - inferMs };
      this.statistics.executed(rows, batch.length, times, Date.now());
      for (const [index, work] of batch.entries()) {
        this.statistics.succeeded(endMs - work.queuedAtMs, beganMs - work.queuedAtMs);
        work.resolve(pieces[index]!);
      }
    } catch (error) {
      // One bad request must not spoil those it was batched with.
      if (batch.length > 1) for (const work of batch) await this.execute(session, [work]);
      else {
        this.statistics.executionCount += 1;
        this.fail(batch[0]!, 'BACKEND', new ServingFault('internal', innerMessage(error)));
      }
    }
  }

  private piecesOf(results: NamedTensor[], batch: readonly Work[]): NamedTensor[][] {
    if (batch.length === 1) return [results];
    const rows = batch.map((work) => work.rows);
    const columns = results.map((tensor) => {
      const pieces = splitRows(tensor, rows);
      if (!pieces) throw new Error(`output '${tensor.name}' has ${tensor.shape[0]} rows for ${rows.join(' + ')} asked`);
      return pieces;
    });
    return batch.map((_work, index) => columns.map((pieces) => pieces[index]!));
  }
}
