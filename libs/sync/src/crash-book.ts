import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

/** How much Triton's end says about what it was loading: it ended by itself, or nobody knows why it went away. */
export type CrashEvidence = 'explained' | 'unexplained';

const record = z.object({
  digest: z.string(),
  /** Ends of Triton in a row while this model came in. */
  crashes: z.number().int(),
  /** Why it is not loaded any more; null: it is only suspected. */
  heldBack: z.string().nullable(),
});
type Record = z.infer<typeof record>;
const written = z.object({
  models: z.record(z.string(), record),
  /** Digests of models that come in now: found at a start, these were coming in when this program died. */
  coming: z.record(z.string(), z.string()),
});

const crashesToHoldBack: { [evidence in CrashEvidence]: number } = { explained: 2, unexplained: 3 };
const mostRecords = 500;

/**
 * Which models take Triton down with them. On disk, so that neither a restart of this program nor one that takes both
 * down at once makes them forgotten. A model held back is tried again under another digest.
 */
export class CrashBook {
  private readonly path: string | undefined;
  private readonly models = new Map<string, Record>();
  /** Models on their way in, each with whether no other was beside it at any time. */
  private readonly coming = new Map<string, { digest: string; alone: boolean }>();
  private before = new Map<string, string>();

  /** `path` undefined: nothing is written (for tests). */
  constructor(path?: string) {
    this.path = path;
    this.load();
  }

  /** Each comes in alone, to know which one it was. */
  suspects(): Set<string> {
    return new Set([...this.models].filter(([, { heldBack }]) => heldBack === null).map(([name]) => name));
  }

  heldBack(name: string, digest: string): string | undefined {
    return this.of(name, digest)?.heldBack ?? undefined;
  }

  /** A model is about to be loaded (or to answer for the first time); on disk before this returns. */
  begin(name: string, digest: string): void {
    if (this.coming.has(name)) return;
    const alone = this.coming.size === 0;
    for (const other of this.coming.values()) other.alone = false;
    this.coming.set(name, { digest, alone });
    this.save();
  }

  /** Whether nothing else came in since it began. */
  isAlone(name: string): boolean {
    return this.coming.get(name)?.alone === true;
  }

  /** It is in, or it failed for a reason of its own. */
  succeeded(name: string): void {
    const known = this.models.get(name);
    if (known?.heldBack === null) this.models.delete(name);
    this.left(name);
  }

  /** Neither in nor the end of Triton: it will be tried again. */
  left(name: string): void {
    if (this.coming.delete(name)) this.save();
  }

  /** Forgets models on their way in that are none any more. */
  keepComing(comes: (name: string) => boolean): void {
    for (const name of [...this.coming.keys()]) if (!comes(name)) this.left(name);
  }

  /** Triton went away while the model came in. Returns the reason if it is held back from now on. */
  crashed(name: string, digest: string, evidence: CrashEvidence, words: string): string | undefined {
    const { alone = false } = this.coming.get(name) ?? {};
    const crashes = (this.of(name, digest)?.crashes ?? 0) + 1;
    const enough = alone && crashes >= crashesToHoldBack[evidence];
    const heldBack = enough
      ? `crashes its server: it ended ${crashes} times in a row while it loaded this model (${words}); the model is tried again with other settings or as a new version`
      : null;
    this.put(name, { digest, crashes, heldBack });
    this.coming.delete(name);
    this.save();
    return heldBack ?? undefined;
  }

  /** For a model that had to be cured of by a restart of the server. */
  holdBack(name: string, digest: string, reason: string): void {
    this.put(name, { digest, crashes: this.of(name, digest)?.crashes ?? 0, heldBack: reason });
    this.coming.delete(name);
    this.save();
  }

  forgive(name: string): void {
    if (this.models.delete(name)) this.save();
  }

  /**
   * Call with Triton's first index: of the models that came in when an earlier program died, those that Triton knows
   * nothing of went down with it.
   */
  settleBefore(knows: (name: string) => boolean): void {
    if (this.before.size === 0) return;
    const lost = [...this.before].filter(([name]) => !knows(name));
    this.before = new Map();
    for (const [name, digest] of lost) {
      this.coming.set(name, { digest, alone: lost.length === 1 });
      this.crashed(name, digest, 'unexplained', 'the agent went down with it');
    }
    this.save();
  }

  private of(name: string, digest: string): Record | undefined {
    const known = this.models.get(name);
    return known?.digest === digest ? known : undefined;
  }

  private put(name: string, entry: Record): void {
    this.models.delete(name);
    this.models.set(name, entry);
    const [oldest] = this.models.keys();
    if (this.models.size > mostRecords && oldest !== undefined) this.models.delete(oldest);
  }

  private load(): void {
    if (this.path === undefined) return;
    try {
      const { models, coming } = written.parse(JSON.parse(readFileSync(this.path, 'utf8')));
      for (const [name, entry] of Object.entries(models)) this.models.set(name, entry);
      this.before = new Map(Object.entries(coming));
    } catch {
      // none yet, or none of ours: found out again
    }
  }

  /** Without a pause, and small: it has to be there should the very next moment be the last. */
  private save(): void {
    if (this.path === undefined) return;
    const coming = [...this.before, ...[...this.coming].map(([name, { digest }]) => [name, digest] as const)];
    if (coming.length === 0 && this.models.size === 0) {
      rmSync(this.path, { force: true });
      return;
    }
    const text = JSON.stringify({ models: Object.fromEntries(this.models), coming: Object.fromEntries(coming) });
    writeFileSync(`${this.path}.new`, text, { mode: 0o600 });
    renameSync(`${this.path}.new`, this.path);
  }
}
