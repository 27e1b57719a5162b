import { Agent, request } from 'node:http';

export interface Reply {
  startedAt: number;
  endedAt: number;
  /** 0: the connection failed. */
  status: number;
  version: number;
  /** `x-perch-arm`; empty when the connection failed. */
  arm: string;
  body: string;
}

/** Sends `body` `perSecond` times a second (open loop: a slow reply delays no other request) until stopped. */
export class ConstantLoad {
  readonly replies: Reply[] = [];
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 64 });
  private readonly pending = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly url: string,
    private readonly headers: Record<string, string>,
    private readonly body: string,
    private readonly perSecond: number,
  ) {}

  start(): this {
    this.timer = setInterval(() => {
      const one = this.send().then((reply) => {
        this.replies.push(reply);
        this.pending.delete(one);
      });
      this.pending.add(one);
    }, 1000 / this.perSecond);
    return this;
  }

  async stop(): Promise<Reply[]> {
    clearInterval(this.timer);
    await Promise.all(this.pending);
    this.agent.destroy();
    return this.replies;
  }

  private send(): Promise<Reply> {
    const startedAt = performance.now();
    return new Promise((done) => {
      const end = (status: number, version: number, body: string, arm = '') =>
        done({ startedAt, endedAt: performance.now(), status, version, arm, body });
      const sent = request(
        this.url,
        {
          method: 'POST',
          agent: this.agent,
          headers: { 'content-type': 'application/json', ...this.headers },
          timeout: 20_000,
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk) => (text += chunk));
          response.on('end', () =>
            end(
              response.statusCode ?? 0,
              Number(response.headers['x-perch-version'] ?? 0),
              text,
              String(response.headers['x-perch-arm'] ?? ''),
            ),
          );
          response.on('error', (error) => end(0, 0, String(error)));
        },
      );
      sent.on('timeout', () => sent.destroy(new Error('no reply in 20 s')));
      sent.on('error', (error) => end(0, 0, String(error)));
      sent.end(this.body);
    });
  }
}

/** With one router and traffic to the newest version, versions only rise: a reply older than one already seen is stale. */
export function staleReplies(replies: readonly Reply[]): Reply[] {
  const ended = [...replies].sort((a, b) => a.endedAt - b.endedAt);
  const highestEndedBefore = (time: number): number => {
    let low = 0;
    let high = ended.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ended[middle]!.endedAt < time) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? 0 : prefixMax[low - 1]!;
  };
  const prefixMax: number[] = [];
  for (const { version } of ended) prefixMax.push(Math.max(prefixMax.at(-1) ?? 0, version));
  return replies.filter((reply) => reply.version < highestEndedBefore(reply.startedAt));
}
