import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Requests and bytes of bodies by what they were for. */
export interface Traffic {
  requests: number;
  sentBytes: number;
  receivedBytes: number;
}
export const purposes = ['desired', 'observed', 'routing-table', 'report', 'other'] as const;
export type Purpose = (typeof purposes)[number];
export type TrafficByPurpose = Record<Purpose, Traffic>;

interface Request {
  path: string;
  body?: unknown;
}

const purposeOf = (path: string): Purpose =>
  purposes.find((purpose) => path.split('?')[0]!.endsWith(`/${purpose}`)) ?? 'other';

const none = (): TrafficByPurpose =>
  Object.fromEntries(
    purposes.map((purpose) => [purpose, { requests: 0, sentBytes: 0, receivedBytes: 0 }]),
  ) as TrafficByPurpose;

/** Counts what every undici client of this process sends and gets, heads of messages left out. */
export class TrafficMeter {
  private readonly counted = none();

  start(): this {
    subscribe('undici:request:create', this.onSent);
    subscribe('undici:request:headers', this.onAnswer);
    return this;
  }

  stop(): void {
    unsubscribe('undici:request:create', this.onSent);
    unsubscribe('undici:request:headers', this.onAnswer);
  }

  read(): TrafficByPurpose {
    return structuredClone(this.counted);
  }

  private readonly onSent = (message: unknown): void => {
    const { request } = message as { request: Request };
    const entry = this.counted[purposeOf(request.path)];
    entry.requests += 1;
    const { body } = request;
    if (typeof body === 'string') entry.sentBytes += Buffer.byteLength(body);
    else if (body instanceof Uint8Array) entry.sentBytes += body.byteLength;
  };

  private readonly onAnswer = (message: unknown): void => {
    const { request, response } = message as { request: Request; response: { headers: Buffer[] } };
    const at = response.headers.findIndex((name, index) => index % 2 === 0 && /^content-length$/i.test(String(name)));
    if (at >= 0) this.counted[purposeOf(request.path)].receivedBytes += Number(String(response.headers[at + 1]));
  };
}

/** What was added between two readings. */
export function differenceOf(before: TrafficByPurpose, after: TrafficByPurpose): TrafficByPurpose {
  const difference = none();
  for (const purpose of purposes)
    for (const field of ['requests', 'sentBytes', 'receivedBytes'] as const)
      difference[purpose][field] = after[purpose][field] - before[purpose][field];
  return difference;
}
