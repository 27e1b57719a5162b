import { type BeforeApplicationShutdown, Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { eventChannel, OutboxService } from '@perch/access';
import { type Actor, AppError, type ChangeEvent } from '@perch/contracts';
import { LOGGER, type Logger, pause } from '@perch/platform';
import { Wakeups } from '@perch/platform/database';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { maySee } from './event.decide.ts';

const heartbeatMs = 15_000;
const batch = 500;
/** Each follower holds a socket; beyond this the caller is told to come back. */
const mostFollowers = 500;

const lineOf = (event: ChangeEvent): string =>
  `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** Server-sent events. The heartbeat's timer also asks the database, so a lost notification costs time and no event. */
@Injectable()
export class EventService implements OnModuleInit, BeforeApplicationShutdown {
  private readonly stopped = new AbortController();
  private readonly wakers = new Set<() => void>();
  private readonly running = new Set<Promise<void>>();

  constructor(
    private readonly outbox: OutboxService,
    private readonly wakeups: Wakeups,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.wakeups.on(eventChannel, () => {
      for (const wake of this.wakers) wake();
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await Promise.all(this.running);
  }

  /** Streams until the client goes or the program stops. `after`: number of the last event seen; undefined: from now on. */
  async follow(actor: Actor, after: number | undefined, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (this.running.size >= mostFollowers)
      throw new AppError('unavailable', `${mostFollowers} callers follow events already; try again later`, {
        retryAfterMs: 5_000,
      });
    const latest = await this.outbox.latest();
    const missed = after !== undefined && (await this.missed(after, latest));
    const start = Math.min(after ?? latest, latest);
    const gone = new AbortController();
    request.raw.once('close', () => gone.abort());
    reply.raw.once('close', () => gone.abort());
    reply.hijack();
    reply.raw.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': request.id,
    });
    reply.raw.write(missed ? 'event: gap\ndata: {}\n\n' : ': following\n\n');
    const stream = this.stream(actor, start, reply, AbortSignal.any([gone.signal, this.stopped.signal]));
    this.running.add(stream);
    await stream.finally(() => this.running.delete(stream));
  }

  /** Events after `after` were forgotten already, or the database went back: the caller has to read the state anew. */
  private async missed(after: number, latest: number): Promise<boolean> {
    const oldest = (await this.outbox.oldest()) ?? latest + 1;
    return after > latest || after < oldest - 1;
  }

  private async stream(actor: Actor, start: number, reply: FastifyReply, signal: AbortSignal): Promise<void> {
    let last = start;
    while (!signal.aborted) {
      const { woken, forget } = this.nextWake();
      try {
        const events = await this.outbox.since(last, batch);
        last = events.at(-1)?.id ?? last;
        const text = events
          .filter((event) => maySee(actor, event))
          .map(lineOf)
          .join('');
        if (text && !reply.raw.write(text)) await this.drained(reply, signal);
        if (events.length < batch) await this.idle(woken, reply, signal);
      } catch (error) {
        this.logger.warn('reading events failed', { error });
        await pause(1_000, signal);
      } finally {
        forget();
      }
    }
    reply.raw.end();
  }

  private async idle(woken: Promise<void>, reply: FastifyReply, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    await Promise.race([woken, pause(heartbeatMs, AbortSignal.any([signal, over.signal]))]);
    over.abort();
    if (!signal.aborted) reply.raw.write(': alive\n\n');
  }

  private nextWake(): { woken: Promise<void>; forget: () => void } {
    let resolve = () => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    this.wakers.add(resolve);
    return { woken: promise, forget: () => void this.wakers.delete(resolve) };
  }

  /** A client that reads slowly holds up only itself. */
  private drained(reply: FastifyReply, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      reply.raw.once('drain', resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
