import { AppError } from '@perch/contracts';
import { ConnectionFault, type FaultKind, TritonFault } from '@perch/triton/inference';
import { describe, expect, it } from 'vitest';
import { type FailedTry, judgeFailure } from './retry.decide.ts';

const tried: FailedTry = { endpoint: 'text/e', tritonModel: 'e-v1-abc', idempotent: true, shortened: false };
const fault = (kind: FaultKind, text = 'words') => new TritonFault(kind, 'infer', text);
const lost = (reached: 'nothing' | 'sent' | 'reply') =>
  new ConnectionFault(reached, 'infer of e-v1-abc on 10.0.0.7:8000', 'reset');

describe('judgeFailure', () => {
  it.each([
    [
      'unknown model',
      fault('unknown_model', "Request for unknown model: 'e-v1-abc' is not found"),
      {},
      'down',
      'free',
      'unavailable',
    ],
    ['not ready', fault('not_ready'), {}, 'down', 'free', 'unavailable'],
    ['stopping', fault('stopping'), {}, 'down', 'free', 'unavailable'],
    ['never connected', lost('nothing'), { idempotent: false }, 'down', 'free', 'unavailable'],
    ['lost before the reply', lost('sent'), {}, 'failed', 'budgeted', 'upstream'],
    ['lost before the reply, not idempotent', lost('sent'), { idempotent: false }, 'failed', 'no', 'upstream'],
    ['lost within the reply', lost('reply'), {}, 'failed', 'budgeted', 'upstream'],
    ['lost within the reply, not idempotent', lost('reply'), { idempotent: false }, 'failed', 'no', 'upstream'],
    ['too late', fault('deadline'), {}, 'failed', 'no', 'timeout'],
    ['too late for an impatient client', fault('deadline'), { shortened: true }, 'fine', 'no', 'timeout'],
    ['queue full', fault('overloaded'), {}, 'fine', 'no', 'unavailable'],
    ['too long in the queue', fault('queue_timeout'), {}, 'fine', 'no', 'timeout'],
    ['wrong input', fault('input'), {}, 'fine', 'no', 'invalid'],
    [
      'broken JSON, which the server calls its own fault',
      fault('model', 'failed to parse the request JSON buffer: x'),
      {},
      'fine',
      'no',
      'invalid',
    ],
    [
      'data beside its shape',
      fault('model', "[request id: <id_unknown>] Unable to parse 'data': x"),
      {},
      'fine',
      'no',
      'invalid',
    ],
    ['the model failed', fault('model'), {}, 'failed', 'no', 'upstream'],
    ['restricted', fault('restricted'), {}, 'failed', 'no', 'upstream'],
    ['client gone', fault('cancelled'), { gone: true }, 'fine', 'no', 'cancelled'],
    ['given up by a server that ends', fault('cancelled'), {}, 'failed', 'budgeted', 'upstream'],
    [
      'given up by a server that ends, not idempotent',
      fault('cancelled'),
      { idempotent: false },
      'failed',
      'no',
      'upstream',
    ],
    ['a reply we cannot read', new AppError('upstream', 'not JSON'), {}, 'failed', 'no', 'upstream'],
    ['our own mistake', new TypeError('x is undefined'), {}, 'fine', 'no', 'internal'],
  ])('%s', (_what, error, more, server, retry, code) => {
    const verdict = judgeFailure(error, { ...tried, ...more });
    expect([verdict.server, verdict.retry, verdict.error.code]).toEqual([server, retry, code]);
    expect(verdict.error.message).not.toMatch(/e-v1-abc|10\.0\.0\.7|x is undefined|request id/);
  });

  it('keeps the model server’s own words under the name the client knows', () => {
    const { error } = judgeFailure(
      fault('input', "[request id: 7] unexpected shape for input 'x' for model 'e-v1-abc'"),
      tried,
    );
    expect(error.message).toBe("unexpected shape for input 'x' for model 'text/e'");
  });
});
