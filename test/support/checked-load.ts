import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';

/** How one request ended, from the client's side. */
export interface CheckedReply {
  endpoint: string;
  router: string;
  /** Unix times in milliseconds, to be held against the database's. */
  startedAt: number;
  endedAt: number;
  /** 0: no answer. */
  status: number;
  version: number;
  /** By what the model multiplied; NaN: the answer is no multiple of the input. */
  factor: number;
  /** The body, or what went wrong with the connection; empty for a good answer. */
  words: string;
}

export interface LoadTarget {
  name: string;
  address: string;
}

export interface CheckedLoadOptions {
  routers: readonly LoadTarget[];
  key: string;
  /** Endpoints that serve `scaleModel(…)`, each with its share of the requests. */
  endpoints: readonly { name: string; share: number }[];
  perSecond: number;
  /** How long a client waits in all, also for a router that takes connections. */
  patienceMs?: number;
}

const refused = new Set(['ECONNREFUSED']);

/**
 * Constant load from a client that knows all routers and asks another one when one does not take connections. Each
 * request has an input of its own, so that an answer to somebody else's request is seen as wrong.
 */
export class CheckedLoad {
  readonly replies: CheckedReply[] = [];
  private readonly pools: { name: string; pool: Pool }[];
  private readonly pending = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;
  private count = 0;
  private startedAt = 0;

  constructor(private readonly options: CheckedLoadOptions) {
    const waitMs = this.patienceMs;
    this.pools = options.routers.map(({ name, address }) => ({
      name,
      pool: new Pool(address, {
        connections: null,
        headersTimeout: waitMs,
        bodyTimeout: waitMs,
        connectTimeout: waitMs,
      }),
    }));
  }

  private get patienceMs(): number {
    return this.options.patienceMs ?? 70_000;
  }

  get inFlight(): number {
    return this.pending.size;
  }

  /** Requests are due by the clock, so that a busy machine sends them late but sends them all. */
  start(): this {
    this.startedAt = performance.now();
    this.timer = setInterval(() => {
      const due = Math.floor(((performance.now() - this.startedAt) / 1_000) * this.options.perSecond);
      while (this.count < due) {
        this.count += 1;
        const one = this.ask(this.count).then((reply) => {
          this.replies.push(reply);
          this.pending.delete(one);
        });
        this.pending.add(one);
      }
    }, 10);
    return this;
  }

  async stop(): Promise<CheckedReply[]> {
    clearInterval(this.timer);
    await Promise.all(this.pending);
    await Promise.all(this.pools.map(({ pool }) => pool.destroy()));
    return this.replies;
  }

  private endpointOf(count: number): string {
    const { endpoints } = this.options;
    let place = ((count * 7) % 100) / 100;
    const found = endpoints.find(({ share }) => {
      place -= share;
      return place < 0;
    });
    return (found ?? endpoints[0]!).name;
  }

  private async ask(count: number): Promise<CheckedReply> {
    const endpoint = this.endpointOf(count);
    const input = [0, 1, 2, 3].map((place) => ((count * 13 + place * 7) % 997) + 1);
    const startedAt = Date.now();
    for (let turn = count; ; turn += 1) {
      const { name: router, pool } = this.pools[turn % this.pools.length]!;
      const end = (status: number, version: number, factor: number, words: string): CheckedReply => ({
        endpoint, router, startedAt, endedAt: Date.now(), status, version, factor, words,
      }); // biome-ignore format: one row reads better
      try {
        const { statusCode, headers, body } = await pool.request({
          method: 'POST',
          path: `/serve/${endpoint}`,
          headers: { 'content-type': 'application/json', authorization: `Bearer ${this.options.key}` },
          body: JSON.stringify({ x: [input] }),
        });
        const text = await body.text();
        const factor = statusCode === 200 ? factorOf(text, input) : Number.NaN;
        const good = statusCode === 200 && !Number.isNaN(factor);
        return end(statusCode, Number(headers['x-perch-version'] ?? 0), factor, good ? '' : text.slice(0, 300));
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        if (!refused.has(code ?? '') || Date.now() - startedAt > this.patienceMs)
          return end(0, 0, Number.NaN, `${code ?? 'error'}: ${message}`);
        await pause(20); // nobody listens there now: the request was not sent
      }
    }
  }
}

function factorOf(text: string, input: readonly number[]): number {
  try {
    const row = (JSON.parse(text) as { y: number[][] }).y[0]!;
    const factor = row[0]! / input[0]!;
    return row.length === input.length && input.every((value, place) => row[place] === value * factor)
      ? factor
      : Number.NaN;
  } catch {
    return Number.NaN;
  }
}

/** The `p`-th share of the times that good answers took, in ms. */
export function latencyMs(replies: readonly CheckedReply[], p: number): number {
  const times = replies.map(({ startedAt, endedAt }) => endedAt - startedAt).sort((a, b) => a - b);
  return times[Math.min(times.length - 1, Math.floor(times.length * p))] ?? Number.NaN;
}
