/** How many runs of one node at once in this process; further ones wait in the order in which they came. */
export class NodeLimit {
  most: number;
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(most: number) {
    this.most = most;
  }

  /** Resolves when there is room. `signal`: who gave up meanwhile takes none, and it rejects with the signal's reason. */
  async enter(signal: AbortSignal): Promise<void> {
    if (this.running < this.most) {
      this.running += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const given = () => {
        signal.removeEventListener('abort', left);
        resolve();
      };
      const left = () => {
        this.waiting.splice(this.waiting.indexOf(given), 1);
        reject(signal.reason);
      };
      this.waiting.push(given);
      signal.addEventListener('abort', left, { once: true });
    });
  }

  leave(): void {
    this.running -= 1;
    while (this.running < this.most && this.waiting.length > 0) {
      this.running += 1;
      this.waiting.shift()!();
    }
  }
}
