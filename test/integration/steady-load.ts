import type { IsolationStand } from './isolation-stand.ts';

const clients = 4;
const everyMs = 10;
const least = 20;

/** Asks one endpoint steadily, each time with numbers of its own, and holds every answer to them. */
export class SteadyLoad {
  readonly failures: string[] = [];
  private readonly tookMs: number[] = [];
  private next = 1;
  private running = true;

  constructor(
    private readonly stand: IsolationStand,
    private readonly endpoint: string,
  ) {}

  /** Loads while `work` goes on, with 20 requests at least. */
  async during(work: () => Promise<unknown>): Promise<{ failures: string[]; p99Ms: number; count: number }> {
    const all = Array.from({ length: clients }, () => this.client());
    try {
      await work();
      while (this.tookMs.length < least) await new Promise((done) => setTimeout(done, everyMs));
    } finally {
      this.running = false;
      await Promise.all(all);
    }
    const sorted = this.tookMs.toSorted((a, b) => a - b);
    const p99Ms = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? 0;
    return { failures: this.failures, p99Ms, count: sorted.length };
  }

  private async client(): Promise<void> {
    while (this.running) {
      const n = this.next++;
      const startedAt = performance.now();
      const answer = await this.stand.ask(this.endpoint, { x: [n, n + 0.5], tag: n }).catch((error) => ({ status: 0, text: String(error.cause ?? error), json: undefined })); // biome-ignore format: one row
      this.tookMs.push(performance.now() - startedAt);
      const wanted = JSON.stringify({ y: [2 * n, 2 * n + 1], tag: n });
      if (answer.status !== 200 || JSON.stringify(answer.json) !== wanted)
        this.failures.push(`${answer.status} ${answer.text}, wanted ${wanted}`);
      await new Promise((done) => setTimeout(done, everyMs));
    }
  }
}
