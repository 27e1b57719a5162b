import { AppError, errorCodeOf, shownMessage, tasks } from '@perch/contracts';
import { withTimeout } from '@perch/platform';
import type { HttpReply, ReplyStream } from '../http1/index.ts';
import type { Call } from './call.ts';

/** How events of a module look to the client. Each text is whole lines of `text/event-stream`, or empty. */
export interface EventFormat {
  event(value: unknown): string;
  /** The reply itself, as JSON text: the last of the events. */
  result(json: string): string;
  failed(error: unknown, requestId: string): string;
}

export const dataLines = (json: string): string => `data: ${json.replace(/\r\n|\r|\n/g, '\ndata: ')}\n\n`;

/** `/serve`: each event as it is, then the reply. */
export const plainEvents: EventFormat = {
  event: (value) => dataLines(JSON.stringify(value) ?? 'null'),
  result: dataLines,
  failed(error, requestId) {
    const body = { error: { code: errorCodeOf(error), message: shownMessage(error), requestId } };
    return `event: error\n${dataLines(JSON.stringify(body))}`;
  },
};

/** What stands between us and the client is not to collect events. */
const streamLines = 'cache-control: no-store\r\nx-accel-buffering: no\r\n';

/** Whether the client asked for events: by the task's own field where the task has one, else by its `accept` header. */
export function asksForEvents(call: Call): boolean {
  const { exchange, arm } = call;
  if (!exchange.stream || !arm) return false;
  const task = taskOf(arm.target.processing);
  const asked = task !== undefined && tasks[task]?.event ? streamField(call.body()) : undefined;
  return asked ?? exchange.head.headers['accept']?.includes('text/event-stream') ?? false;
}

export const taskOf = ({ builtin, module }: Call['arm']['target']['processing']): string | undefined =>
  builtin ?? module?.facts.task;

function streamField(body: Buffer): boolean | undefined {
  try {
    const { stream } = JSON.parse(body.toString('utf8'));
    return typeof stream === 'boolean' ? stream : undefined;
  } catch {
    return undefined; // the module says what is wrong with it
  }
}

/** The reply of one call as server-sent events: begun by its first event. */
export class ReplyEvents {
  private readonly call: Call;
  private readonly format: EventFormat;
  private readonly stream: ReplyStream;

  /** Sends the head: from here on this arm answers. Throws `cancelled` when the client has gone. */
  constructor(call: Call, format: EventFormat) {
    this.call = call;
    this.format = format;
    const headerLines = `${call.replyLines}${feedbackLine(call)}x-request-id: ${call.requestId}\r\n${streamLines}`;
    const head = { status: 200, contentType: 'text/event-stream; charset=utf-8', headerLines };
    const stream = call.exchange.stream!(head);
    if (!stream) throw new AppError('cancelled', 'the client went away');
    this.stream = stream;
    const now = performance.now();
    call.first?.begun(now);
    call.arm.stats.countFirstEvent(now - call.startedAt);
  }

  /** Resolves when the client takes more. Throws `cancelled` when it went away, or does not within the deadline. */
  async send(event: unknown): Promise<void> {
    const taken = this.stream.write(this.textOf(event));
    if (!taken) return;
    try {
      await withTimeout(taken, Math.ceil(this.call.remainingMs()), 'taking events');
    } catch (cause) {
      // a client that reads too slowly is no fault of the version
      throw new AppError('cancelled', 'the client did not take its events', { cause });
    }
  }

  /** `body`: the reply as JSON. */
  finish(body: HttpReply['body']): void {
    const json = typeof body === 'string' ? body : Buffer.concat(body).toString('utf8');
    this.end(() => this.format.result(json), false);
  }

  /** Says what went wrong and ends the connection, so that nobody takes the reply for whole. */
  fail(error: unknown): void {
    this.end(() => this.format.failed(error, this.call.requestId), true);
  }

  private end(text: () => string, close: boolean): void {
    try {
      void this.stream.write(text());
    } catch {
      close = true; // it left, or does not read: there is nobody to tell
    }
    this.stream.end(close);
  }

  private textOf(event: unknown): string {
    try {
      return this.format.event(event);
    } catch (cause) {
      if (cause instanceof AppError) throw cause;
      throw new AppError('module', 'ctx.stream was given something that is no JSON value', { cause });
    }
  }
}

/** Feedback on the prediction finds its arm by this; the head is sent before the attempt has ended. */
function feedbackLine({ trial, first, arm, requestId }: Call): string {
  const own = trial && first && arm.target.deployment === first.rollout[trial.side].deployment;
  return own ? trial.feedbackLine(requestId) : '';
}
