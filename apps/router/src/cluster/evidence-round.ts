/** A worker that does not answer by then is busy: its evidence goes with the next report. */
const limitMs = 250;

/** One question to all workers at a time: resolves when each has answered, ended, or taken too long. */
export class EvidenceRound {
  private id = 0;
  private readonly waiting = new Set<number>();
  private done: (() => void) | undefined;

  ask(workers: readonly number[], send: (id: number) => void): Promise<void> {
    this.finish();
    if (workers.length === 0) return Promise.resolve();
    this.id += 1;
    for (const worker of workers) this.waiting.add(worker);
    return new Promise((resolve) => {
      const limit = setTimeout(() => this.finish(), limitMs);
      this.done = () => {
        clearTimeout(limit);
        resolve();
      };
      send(this.id);
    });
  }

  /** `id`: of the question; left out: the worker ended. */
  answered(worker: number, id = this.id): void {
    if (id !== this.id) return;
    this.waiting.delete(worker);
    if (this.waiting.size === 0) this.finish();
  }

  private finish(): void {
    const { done } = this;
    this.done = undefined;
    this.waiting.clear();
    done?.();
  }
}
