const budgetMs = 4;

/** Cuts long work into slices, so that requests are served in between: `if (slice.isOver()) await slice.next()`. */
export class Slice {
  private until = performance.now() + budgetMs;

  isOver(): boolean {
    return performance.now() >= this.until;
  }

  async next(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.until = performance.now() + budgetMs;
  }
}
