import { AppError } from '@perch/contracts';
import type { ServeOptions } from '@perch/processing';
import type { HttpReply } from '../http1/index.ts';
import { Branches } from './branches.ts';
import { Call, type CallHost } from './call.ts';
import type { CustomStats } from './custom-stats.ts';
import type { Dispatch } from './dispatch.ts';
import { InnerExchange } from './inner-exchange.ts';
import type { KeyRing } from './key-ring.ts';

/** A module that asks itself would never end. */
const deepest = 8;

/** How a call is answered once it is opened; counts it as any other. */
export type AnswerCall = (call: Call) => Promise<HttpReply>;

/** Who calls: a request, or one run of a node within it. */
export type Caller = Pick<Call, 'exchange' | 'requestId' | 'depth' | 'deadlineAt' | 'signal'>;

interface InnerParts {
  dispatch: Dispatch;
  keys: KeyRing;
  custom: CustomStats;
  host: CallHost;
  answer: AnswerCall;
}

/** Calls of other endpoints from within a call: with its key, within its deadline, without a connection. */
export class InnerCalls {
  private readonly parts: InnerParts;

  constructor(parts: InnerParts) {
    this.parts = parts;
  }

  /**
   * `trusted`: the caller was set up by somebody who may name any endpoint (a pipeline); otherwise the outer request's
   * key must be allowed to. Answers the reply's JSON value. Throws what a client would be told.
   */
  async serve(
    outer: Caller,
    endpoint: string,
    body: unknown,
    { version, contentType, timeoutMs }: ServeOptions = {},
    trusted = false,
  ): Promise<unknown> {
    const { dispatch, keys, custom, host, answer } = this.parts;
    if (outer.depth >= deepest)
      throw new AppError('invalid', `endpoints ask one another more than ${deepest} deep, last ${endpoint}`);
    const table = dispatch.table();
    const route = table.endpoints.get(endpoint);
    if (!route) throw new AppError('not_found', `there is no endpoint ${endpoint}`);
    if (!trusted) keys.check(table, outer.exchange.head.headers['authorization'], route);
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body ?? null));
    if (bytes.length > route.route.maxBodyBytes)
      throw new AppError(
        'too_large',
        `the body is larger than the ${route.route.maxBodyBytes} bytes that ${endpoint} takes`,
      );
    const type = contentType ?? (Buffer.isBuffer(body) ? 'application/octet-stream' : 'application/json');
    const branch = Branches.of(outer.exchange).add();
    const exchange = new InnerExchange(outer, branch, `/serve/${endpoint}`, { contentType: type, bytes });
    const call = new Call(exchange, outer.requestId, route, version, custom);
    call.host = host;
    call.depth = outer.depth + 1;
    const now = performance.now();
    call.start(now, Math.min(outer.deadlineAt, now + (timeoutMs ?? Number.POSITIVE_INFINITY)));
    try {
      return jsonOf(await answer(call));
    } finally {
      branch.done();
    }
  }
}

function jsonOf({ body }: HttpReply): unknown {
  const text = typeof body === 'string' ? body : Buffer.concat(body as Uint8Array[]).toString('utf8');
  return JSON.parse(text);
}
