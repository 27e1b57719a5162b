import { AppError, type ModuleFixture, type Tensors } from '@perch/contracts';
import type { CallContext } from '@perch/processing';
import type { LoadedProcessing } from '@perch/processing/host';
import { type Difference, differences, shown } from './difference.plan.ts';
import type { FixtureBody } from './fixture-body.source.ts';
import type { ModelSource } from './model.source.ts';

export interface FixtureVerdict {
  name: string;
  /** Null: the fixture wants nothing, the reply is only shown. */
  ok: boolean | null;
  reply?: unknown;
  error?: { code: string; message: string };
  differences: Difference[];
  durationMs: number;
  /** What was streamed ahead of the reply. */
  events: unknown[];
  /** What the module counted, observed, flagged and logged. */
  told: string[];
}

const limitMs = 60_000;

export interface FixtureRun {
  name: string;
  fixture: ModuleFixture & { nothingWanted?: boolean };
  request: FixtureBody;
  loaded: LoadedProcessing;
  model: ModelSource;
  endpoint: string;
}

/** One request through the module as a router would do it, judged by the fixture. */
export async function runFixture({
  name,
  fixture,
  request,
  loaded,
  model,
  endpoint,
}: FixtureRun): Promise<FixtureVerdict> {
  const told: string[] = [];
  const events: unknown[] = [];
  const begun = performance.now();
  const headers = fixture.headers ?? {};
  const streams = /event-stream/.test(headers['accept'] ?? '') || wantsStream(fixture.body);
  const ctx = callOf({ name, endpoint, model, headers, request, streams, told, events });
  const done = (rest: Pick<FixtureVerdict, 'ok' | 'differences' | 'reply' | 'error'>): FixtureVerdict => ({
    name,
    ...rest,
    durationMs: Math.round((performance.now() - begun) * 10) / 10,
    events,
    told,
  });
  try {
    const reply = await answerOf(loaded, request, model, ctx);
    if (fixture.nothingWanted) return done({ ok: null, reply, differences: [] });
    if (fixture.error !== undefined) {
      const words = `wanted the refusal ${fixture.error}, got ${shown(reply)}`;
      return done({ ok: false, reply, differences: [{ path: '', words }] });
    }
    const found = differences(fixture.wanted, reply, fixture.tolerance);
    return done({ ok: found.length === 0, reply, differences: found });
  } catch (thrown) {
    const error = { code: thrown instanceof AppError ? thrown.code : 'internal', message: (thrown as Error).message };
    const ok = fixture.error !== undefined && fixture.error === error.code;
    const wanted = fixture.error === undefined ? 'a reply' : `the refusal ${fixture.error}`;
    const words = `wanted ${wanted}, got ${error.code}: ${error.message}`;
    return done({ ok, error, differences: ok ? [] : [{ path: '', words }] });
  }
}

const wantsStream = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && (body as { stream?: unknown }).stream === true;

async function answerOf(
  loaded: LoadedProcessing,
  { body, contentType }: FixtureBody,
  model: ModelSource,
  ctx: CallContext,
): Promise<unknown> {
  const { inputs, carry } = await loaded.preprocess(body, contentType, ctx);
  const outputs = loaded.process ? await loaded.process(inputs, carry, ctx) : await model.infer(inputs as Tensors);
  const reply = await loaded.postprocess(outputs, carry, ctx);
  const bytes = reply instanceof Uint8Array ? Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength) : undefined;
  return JSON.parse(bytes ? bytes.toString('utf8') : (JSON.stringify(reply) ?? 'null'));
}

interface CallParts extends Pick<FixtureRun, 'name' | 'endpoint' | 'model' | 'request'> {
  headers: Record<string, string>;
  streams: boolean;
  told: string[];
  events: unknown[];
}

function callOf({ name, endpoint, model, headers, request, streams, told, events }: CallParts): CallContext {
  const endsAt = performance.now() + limitMs;
  return {
    requestId: `fixture-${name}`,
    endpoint,
    version: 1,
    signal: AbortSignal.timeout(limitMs),
    remainingMs: () => Math.max(0, endsAt - performance.now()),
    headers: { 'content-type': request.contentType, ...headers },
    state: {},
    log: (level, message, fields) => void told.push(`${level}: ${message}${fields ? ` ${shown(fields)}` : ''}`),
    infer: (inputs) => model.infer(inputs),
    serve: (to, body, options) => model.serve(to, body, options?.contentType),
    streams,
    stream: async (event) => void events.push(event),
    observe: (metric, value) => void told.push(`observe ${metric} ${value}`),
    count: (metric, by = 1) => void told.push(`count ${metric} ${by}`),
    flag: (metric) => void told.push(`flag ${metric}`),
  };
}
