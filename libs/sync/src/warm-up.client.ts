import { elementBytes, type GoldenRequest, type TensorSpec } from '@perch/contracts';
import {
  type CallOptions,
  type Cancellation,
  type InferenceServer,
  type InferenceTransport,
  type NamedTensor,
  TritonFault,
} from '@perch/triton/inference';
import { goldenFault } from './golden.decide.ts';
import { goldenAnswer, goldenQuestion } from './golden-message.plan.ts';

const mostBytes = 64 * 1024 ** 2;
/** Faults that say: the request did not get to the model. Anything else is an answer of the model. */
const notReached = new Set([
  'connection',
  'deadline',
  'cancelled',
  'not_ready',
  'unknown_model',
  'stopping',
  'overloaded',
]);

/** One request of zeros, every variable dimension 1; undefined when that would be too large to be worth it. */
export function zeroInputs(inputs: readonly TensorSpec[]): NamedTensor[] | undefined {
  const tensors: NamedTensor[] = [];
  let total = 0;
  for (const { name, datatype, shape, optional } of inputs) {
    if (optional) continue;
    const fixed = shape.map((size) => (size === -1 ? 1 : size));
    // An empty text is its length, four zero bytes.
    const sizeBytes = fixed.reduce((product, size) => product * size, 1) * (elementBytes[datatype] || 4);
    total += sizeBytes;
    if (total > mostBytes) return undefined;
    tensors.push({ name, datatype, shape: fixed, bytes: new Uint8Array(sizeBytes) });
  }
  return tensors;
}

export interface WarmUpOutcome {
  outcome: 'ok' | 'refused' | 'skipped';
  /** The model's words when it refused the zeros. */
  words?: string;
}

/** Sends the first request to a loaded model, so that no user pays for it. */
export class WarmUpClient {
  private readonly transport: InferenceTransport;
  private readonly server: InferenceServer;
  private readonly timeoutMs: number;

  constructor(transport: InferenceTransport, server: InferenceServer, timeoutMs = 30_000) {
    this.transport = transport;
    this.server = server;
    this.timeoutMs = timeoutMs;
  }

  /** Throws only when no answer of the model came: no connection, no reply in time, not ready. */
  async warm(model: string, inputs: readonly TensorSpec[], signal: AbortSignal): Promise<WarmUpOutcome> {
    const tensors = zeroInputs(inputs);
    if (!tensors) return { outcome: 'skipped' };
    try {
      const request = { modelName: model, inputs: tensors };
      await this.cancellable(signal, (options) => this.transport.infer(this.server, request, options));
      return { outcome: 'ok' };
    } catch (error) {
      if (error instanceof TritonFault && !notReached.has(error.kind)) return { outcome: 'refused', words: error.text };
      throw error;
    }
  }

  /**
   * Why the model's answer to a golden request is not the golden one; undefined: it is. `declared`: the model's outputs.
   * Throws as `warm` does.
   */
  async prove(
    model: string,
    golden: GoldenRequest,
    declared: readonly TensorSpec[],
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const request = { method: 'POST', model, action: '/infer', ...goldenQuestion(golden, declared) } as const;
    try {
      const reply = await this.cancellable(signal, (options) => this.transport.forward(this.server, request, options));
      const outputs = goldenAnswer(reply);
      return outputs ? goldenFault(golden, outputs) : 'the reply is no JSON (NaN and infinity have no JSON form)';
    } catch (error) {
      if (error instanceof TritonFault && !notReached.has(error.kind)) return `the model refused it: ${error.text}`;
      throw error;
    }
  }

  private async cancellable<T>(signal: AbortSignal, call: (options: CallOptions) => Promise<T>): Promise<T> {
    const cancellation: Cancellation = { cancelled: signal.aborted, onCancel: undefined };
    const cancel = () => {
      Object.assign(cancellation, { cancelled: true });
      cancellation.onCancel?.();
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await call({ timeoutMs: this.timeoutMs, cancellation });
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}
