interface Kept<T> {
  value: Promise<T>;
  size: number;
}

/** Answers that several followers ask for at once are made once. The last few are kept, as far as there is room. */
export class AnswerBook<T> {
  private readonly kept = new Map<string, Kept<T>>();
  private total = 0;

  constructor(
    private readonly most: number,
    private readonly sizeOf: (value: T) => number,
  ) {}

  get(key: string, make: () => Promise<T>): Promise<T> {
    const found = this.kept.get(key);
    if (found) return found.value;
    const entry: Kept<T> = { value: make(), size: 0 };
    this.kept.set(key, entry);
    entry.value.then(
      (value) => this.settle(key, entry, this.sizeOf(value)),
      () => this.drop(key, entry),
    );
    return entry.value;
  }

  /** Forgets the keys that start so: what is being read for them may be older than what the next caller must see. */
  forget(start: string): void {
    for (const [key, entry] of this.kept) if (key.startsWith(start)) this.drop(key, entry);
  }

  private settle(key: string, entry: Kept<T>, size: number): void {
    if (this.kept.get(key) !== entry) return;
    entry.size = size;
    this.total += size;
    for (const [oldest, other] of this.kept) {
      if (this.total <= this.most) return;
      this.drop(oldest, other);
    }
  }

  private drop(key: string, entry: Kept<T>): void {
    if (this.kept.get(key) !== entry) return;
    this.kept.delete(key);
    this.total -= entry.size;
  }
}
