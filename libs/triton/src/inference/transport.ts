import type { InferRequest, InferResponse } from '../wire/index.ts';

/** Where one Triton listens; both are `host:port`. */
export interface InferenceServer {
  http: string;
  grpc: string;
}

/**
 * What a caller cancels with: whoever carries out the call sets `onCancel` and clears it when done. A bare slot, since an
 * AbortSignal and its listener would cost more than all the rest of a small call's bookkeeping.
 */
export interface Cancellation {
  readonly cancelled: boolean;
  onCancel: (() => void) | undefined;
}

export interface CallOptions {
  /** Milliseconds from now; must be above 0. */
  timeoutMs: number;
  /** Ends the call with fault `cancelled`; over HTTP by closing the connection, since Triton has no other way there. */
  cancellation?: Cancellation;
}

/** A request of `/v2/models/<model>…` handed on as it stands, with another model name. */
export interface ForwardRequest {
  method: 'GET' | 'POST';
  model: string;
  /** Absent or empty: the highest that is ready. */
  modelVersion?: string;
  /** What follows the model in the path: `/infer`, `/ready`, `/config`, `/stats` or nothing. */
  action: '/infer' | '/ready' | '/config' | '/stats' | '';
  /** Sent as they stand; names in lower case. Framing headers are the transport's own. */
  headers: Readonly<Record<string, string>>;
  /** The body in pieces; sent behind one another without a copy. */
  body: readonly Uint8Array[];
}

export interface ForwardReply {
  contentType: string;
  /** Bytes of JSON in front of binary tensors; undefined when the whole body is JSON. */
  headerLength: number | undefined;
  body: Buffer;
  /** All of the request's body has left this process: its bytes may be overwritten. */
  sent: boolean;
}

/**
 * Unary inference on one server. Every failure is a `TritonFault`; when the connection is at fault it is a
 * `ConnectionFault`, whose `reached` tells whether the request may have run. A timeout is fault `deadline`.
 */
export interface InferenceTransport {
  infer(server: InferenceServer, request: InferRequest, options: CallOptions): Promise<InferResponse>;
  forward(server: InferenceServer, request: ForwardRequest, options: CallOptions): Promise<ForwardReply>;
  close(): Promise<void>;
}
