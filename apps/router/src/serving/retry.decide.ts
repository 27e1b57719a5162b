import { AppError } from '@perch/contracts';
import { ConnectionFault, type FaultKind, TritonFault } from '@perch/triton/inference';

/**
 * What one failed try says about its server: `down` = it surely did not run the request and will not run the next one
 * either, for now; `failed` = counts towards ejection; `fine` = the request itself was at fault, or nobody.
 */
export type ServerVerdict = 'fine' | 'failed' | 'down';

/** `free`: the request surely did not run, so trying elsewhere adds no load. `budgeted`: it may have run. */
export type RetryVerdict = 'no' | 'free' | 'budgeted';

export interface FailureVerdict {
  server: ServerVerdict;
  retry: RetryVerdict;
  /** What the client is told when there is no other try. */
  error: AppError;
}

export interface FailedTry {
  /** The endpoint's name; stands in messages where the model server wrote its own name for the model. */
  endpoint: string;
  tritonModel: string;
  idempotent: boolean;
  /** The client asked for less time than the endpoint gives; then a timeout says little about the server. */
  shortened: boolean;
  /** Nobody waits for the answer any more. Absent: somebody does. */
  gone?: boolean;
}

const retryAfterMs = 1_000;

/** Broken JSON or data that does not fit its shape is the client's fault, but the model server says 500. */
const badJson = /^(\[request id: [^\]]*\] )?(Unable to parse|failed to parse the request JSON)/;

function clientText(text: string, { tritonModel, endpoint }: FailedTry): string {
  return text.replace(/^\[request id: [^\]]*\] /, '').replaceAll(tritonModel, endpoint);
}

type Row = (fault: TritonFault, tried: FailedTry) => Omit<FailureVerdict, 'error'> & { error?: AppError };

const down: Row = (_, { endpoint }) => ({
  server: 'down',
  retry: 'free',
  error: new AppError('unavailable', `no server of ${endpoint} is ready`, { retryAfterMs }),
});
const refused: Row = (fault, tried) => ({
  server: 'fine',
  retry: 'no',
  error: new AppError('invalid', clientText(fault.text, tried)),
});
const failed: Row = (fault, tried) => ({
  server: 'failed',
  retry: 'no',
  error: new AppError('upstream', `the model failed: ${clientText(fault.text, tried)}`),
});

const rows: Record<FaultKind, Row> = {
  unknown_model: down,
  not_ready: down,
  stopping: down,
  connection: (fault, tried) => {
    const reached = fault instanceof ConnectionFault ? fault.reached : 'sent';
    if (reached === 'nothing') return down(fault, tried);
    const error = new AppError('upstream', `the connection to the model server of ${tried.endpoint} was lost`);
    // Replies are passed on whole, so of one that was cut short nothing has reached the client.
    return { server: 'failed', retry: tried.idempotent ? 'budgeted' : 'no', error };
  },
  deadline: (_, { shortened, endpoint }) => ({
    server: shortened ? 'fine' : 'failed',
    retry: 'no',
    error: new AppError('timeout', `${endpoint} gave no answer in time`),
  }),
  queue_timeout: (_, { endpoint }) => ({
    server: 'fine',
    retry: 'no',
    error: new AppError('timeout', `the request waited too long in the queue of ${endpoint}`),
  }),
  overloaded: (_, { endpoint }) => ({
    server: 'fine',
    retry: 'no',
    error: new AppError('unavailable', `the queue of ${endpoint} is full`, { retryAfterMs }),
  }),
  // A model server that ends cancels what it has in hand; then it is not the client who went away.
  cancelled: (_, { gone, idempotent, endpoint }) =>
    gone
      ? { server: 'fine', retry: 'no', error: new AppError('cancelled', 'the client went away') }
      : {
          server: 'failed',
          retry: idempotent ? 'budgeted' : 'no',
          error: new AppError('upstream', `the model server of ${endpoint} gave the request up`),
        },
  input: refused,
  unsupported: refused,
  load: failed,
  restricted: failed,
  model: (fault, tried) => (badJson.test(fault.text) ? refused(fault, tried) : failed(fault, tried)),
  other: failed,
};

/** Judges one failed try by the model server's own words (see the table of errors in the protocol's facts). */
export function judgeFailure(error: unknown, tried: FailedTry): FailureVerdict {
  if (error instanceof TritonFault) {
    const verdict = rows[error.kind](error, tried);
    return { ...verdict, error: verdict.error ?? error };
  }
  const shown = error instanceof AppError ? error : new AppError('internal', 'internal error', { cause: error });
  return { server: shown.code === 'upstream' ? 'failed' : 'fine', retry: 'no', error: shown };
}
