import type { EndpointMetrics } from '@perch/contracts';
import type { Call } from './call.ts';

/** Bigger bodies are not parsed a second time for their metrics. */
const mostBytes = 65_536;
const mostElements = 100;

type Fields = Record<string, unknown>;

/** The JSON object of a text; undefined for anything else. */
function objectOf(text: Buffer | string): Fields | undefined {
  if (text.length > mostBytes) return undefined;
  try {
    const value: unknown = JSON.parse(text.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

const isJson = (contentType: string | undefined) => !contentType || !/^\s*(multipart|image|audio|video)\//i.test(contentType); // biome-ignore format: one row

/**
 * Gives the endpoint's metrics what its module did not observe by itself: fields of the reply, or else of the request, by
 * the metric's name. Lists give each of their elements. `reply`: a JSON value, or a Buffer of JSON text.
 */
export function observeFields(call: Call, metrics: EndpointMetrics, reply: unknown, durationMs: number): void {
  if ('_latency' in metrics.variables) call.observe('_latency', durationMs / 1_000);
  const wanted = Object.keys(metrics.variables).filter((name) => name !== '_latency' && !call.observed?.has(name));
  if (wanted.length === 0 || (metrics.sample < 1 && Math.random() >= metrics.sample)) return;
  const answer = Buffer.isBuffer(reply) ? objectOf(reply) : (reply as Fields | null | undefined);
  let request: Fields | undefined | null = null;
  for (const name of wanted) {
    let value = fieldOf(answer, name);
    if (value === undefined) {
      if (request === null) request = isJson(call.contentType) ? objectOf(call.body()) : undefined;
      value = fieldOf(request, name);
    }
    for (const one of Array.isArray(value) ? value.flat(8).slice(0, mostElements) : [value])
      if (typeof one === 'number' || typeof one === 'string') call.observe(name, one);
      else if (typeof one === 'boolean') call.observe(name, String(one));
  }
}

const fieldOf = (fields: Fields | null | undefined, name: string): unknown =>
  typeof fields === 'object' && fields !== null && Object.hasOwn(fields, name) ? fields[name] : undefined;
