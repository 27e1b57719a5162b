import type { Claim } from './work.store.ts';

export interface LaneParts {
  /** Passes that run at the same time. */
  atOnce: number;
  /** Claims at most so many; never throws. */
  claim(limit: number): Promise<Claim[]>;
  /** Gives back what was claimed and not begun. */
  release(claims: readonly Claim[]): Promise<void>;
  /** Keeps the lease of a claim that waited; false: somebody else has it now. */
  keep(claim: Claim): Promise<boolean>;
  keepAfterMs: number;
  /** Never throws. */
  run(claim: Claim): Promise<void>;
}

interface Waiting {
  claim: Claim;
  since: number;
}

/**
 * Works through one kind: some passes at once, and as many again claimed ahead, so that one claim serves several passes.
 * It asks for work when it was woken, and as long as a claim comes back full; else it costs nothing.
 */
export class WorkLane {
  private readonly active = new Set<Promise<void>>();
  private readonly ahead: Waiting[] = [];
  /** There may be more work than was claimed. */
  private hungry = true;
  private stir: () => void = () => undefined;
  private timer: { at: number; handle: NodeJS.Timeout } | undefined;

  constructor(private readonly parts: LaneParts) {}

  /** Something is due. */
  wake(): void {
    this.hungry = true;
    this.stir();
  }

  /** Something will be due then; the nearest such time counts, later ones are told again by whoever watches the clock. */
  wakeIn(ms: number): void {
    if (ms <= 0) {
      this.wake();
      return;
    }
    const at = performance.now() + ms;
    if (this.timer && this.timer.at <= at) return;
    clearTimeout(this.timer?.handle);
    const handle = setTimeout(() => {
      this.timer = undefined;
      this.wake();
    }, ms + 1);
    this.timer = { at, handle };
  }

  /** Resolves when the passes begun before `signal` aborted are over. */
  async run(signal: AbortSignal): Promise<void> {
    const { atOnce, claim } = this.parts;
    signal.addEventListener('abort', () => this.stir(), { once: true });
    while (!signal.aborted) {
      const stirred = new Promise<void>((resolve) => {
        this.stir = resolve;
      });
      if (this.hungry && this.ahead.length === 0 && this.active.size < atOnce) {
        const limit = 2 * atOnce - this.active.size;
        this.hungry = false;
        const claims = await claim(limit);
        if (claims.length === limit) this.hungry = true;
        const since = performance.now();
        this.ahead.push(...claims.map((one) => ({ claim: one, since })));
      }
      while (this.active.size < atOnce && this.ahead.length > 0) this.begin(this.ahead.shift()!);
      if (this.hungry && this.ahead.length === 0 && this.active.size < atOnce) continue;
      if (!signal.aborted) await Promise.race([stirred, ...this.active]);
    }
    await this.parts.release(this.ahead.splice(0).map((one) => one.claim)).catch(() => undefined);
    await Promise.all(this.active);
    clearTimeout(this.timer?.handle);
  }

  private begin({ claim, since }: Waiting): void {
    const { run, keep, keepAfterMs } = this.parts;
    const waited = performance.now() - since > keepAfterMs;
    const pass = (waited ? keep(claim).catch(() => false) : Promise.resolve(true))
      .then((ours) => (ours ? run(claim) : undefined))
      .finally(() => this.active.delete(pass));
    this.active.add(pass);
  }
}
