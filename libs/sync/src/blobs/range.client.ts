import type { Dispatcher } from 'undici';

export interface RangeRequest {
  url: string;
  /** Value of the Range header; undefined: the whole object. */
  range: string | undefined;
  dispatcher: Dispatcher;
  headersTimeoutMs: number;
  /** Longest silence within the body. */
  idleTimeoutMs: number;
  signal: AbortSignal;
}

/** Takes the body as it comes; both may throw, which ends the request with that error. */
export interface RangeSink {
  onStatus(status: number): void;
  /** False: no more until `hasRoom` resolves. */
  onChunk(chunk: Uint8Array): boolean;
  hasRoom(): Promise<void>;
}

/**
 * One GET whose body goes straight from the socket to a sink: undici's own streams would take a third of the CPU time of
 * a pull. Resolves when the body has ended; rejects on any fault of the connection, the sink, or `signal`.
 */
export function requestRange(request: RangeRequest, sink: RangeSink): Promise<void> {
  const { origin, pathname, search } = new URL(request.url);
  const { signal } = request;
  return new Promise<void>((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    const abort = () => controller?.abort(signal.reason);
    const end = (settle: () => void) => {
      signal.removeEventListener('abort', abort);
      settle();
    };
    const guarded = (work: () => void) => {
      try {
        work();
      } catch (error) {
        controller!.abort(error as Error);
      }
    };
    const takeChunk = (chunk: Buffer) => {
      if (sink.onChunk(chunk)) return;
      controller!.pause();
      void sink.hasRoom().then(() => controller!.resume());
    };
    signal.addEventListener('abort', abort, { once: true });
    request.dispatcher.dispatch(
      {
        origin,
        path: pathname + search,
        method: 'GET',
        headers: request.range === undefined ? {} : { range: request.range },
        headersTimeout: request.headersTimeoutMs,
        bodyTimeout: request.idleTimeoutMs,
      },
      {
        onRequestStart: (started) => {
          controller = started;
          if (signal.aborted) abort();
        },
        onResponseStart: (_, status) => guarded(() => sink.onStatus(status)),
        onResponseData: (_, chunk) => guarded(() => takeChunk(chunk)),
        onResponseEnd: () => end(resolve),
        onResponseError: (_, error) => end(() => reject(error)),
      },
    );
  });
}
