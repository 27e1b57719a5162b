import type { MetricEvidence, WorkerEvidence } from '@perch/contracts';

/** Sets of buckets are what is big: a report stays well below what the control plane takes in one. */
const mostSetCharacters = 1_000_000;
const mostEntries = 2_000;
/** So long after its last change nobody asks for it again, other than a control plane that lost its memory. */
const keepMs = 3_600_000;

/** Evidence to send, and what of the ledger it is. */
export interface ToldEvidence {
  evidence: WorkerEvidence[];
  told: { entry: Entry; fresh: ReadonlySet<string> }[];
}

interface Entry {
  /** With every set of buckets that was ever heard. */
  whole: WorkerEvidence;
  news: boolean;
  /** Paths of sets that the control plane has not heard as they are. */
  fresh: Set<string>;
  changedAt: number;
}

const views = (['stable', 'candidate'] as const).flatMap((side) =>
  (['ended', 'closed'] as const).map((view) => ({ side, view, path: `${side} ${view}` })),
);

function eachMetric(one: WorkerEvidence, visit: (metric: MetricEvidence, name: string, path: string) => void): void {
  for (const { side, view, path } of views)
    for (const [name, metric] of Object.entries(one[side][view])) visit(metric, name, `${path} ${name}`);
}

/**
 * Evidence of all workers of a router, by rollout, epoch and worker, and what of it the control plane has not heard. A
 * worker that ended leaves its last counts behind.
 */
export class EvidenceLedger {
  private readonly entries = new Map<string, Entry>();

  /** `evidence` is cumulative, but for sets of buckets that did not grow; `now` on a clock that never goes back. */
  hear(worker: number, evidence: readonly WorkerEvidence[], now: number): void {
    for (const one of evidence) {
      const key = `${one.rollout} ${one.epoch} ${worker}`;
      const before = this.entries.get(key);
      const whole = { ...structuredClone(one), worker };
      const fresh = before?.fresh ?? new Set();
      eachMetric(whole, (metric, _, path) => {
        for (const set of ['seen', 'hit'] as const) if (metric[set] !== undefined) fresh.add(`${path} ${set}`);
      });
      if (before) keepSets(whole, before.whole);
      this.entries.delete(key); // what changed last is told last, so that everybody gets a turn
      this.entries.set(key, { whole, news: true, fresh, changedAt: now });
    }
    for (const [key, { news, changedAt }] of this.entries)
      if (!news && now - changedAt > keepMs) this.entries.delete(key);
  }

  /** What is news, as much as one report takes; undefined: nothing is. Not news any more, unless `again` says otherwise. */
  take(): ToldEvidence | undefined {
    const taken: ToldEvidence = { evidence: [], told: [] };
    let size = 0;
    for (const entry of this.entries.values()) {
      if (!entry.news) continue;
      if (size > mostSetCharacters || taken.told.length >= mostEntries) break;
      const { fresh } = entry;
      const one = structuredClone(entry.whole);
      eachMetric(one, (metric, _, path) => {
        for (const set of ['seen', 'hit'] as const) {
          if (fresh.has(`${path} ${set}`)) size += metric[set]?.length ?? 0;
          else delete metric[set];
        }
      });
      taken.evidence.push(one);
      taken.told.push({ entry, fresh });
      entry.news = false;
      entry.fresh = new Set();
    }
    return taken.told.length > 0 ? taken : undefined;
  }

  get hasNews(): boolean {
    for (const { news } of this.entries.values()) if (news) return true;
    return false;
  }

  /** It was not heard. */
  again({ told }: ToldEvidence): void {
    for (const { entry, fresh } of told) this.tellAgain(entry, fresh);
  }

  /** The control plane knows nothing of this boot: all of it is news. */
  allAgain(): void {
    for (const entry of this.entries.values()) {
      const fresh = new Set<string>();
      eachMetric(entry.whole, (metric, _, path) => {
        for (const set of ['seen', 'hit'] as const) if (metric[set] !== undefined) fresh.add(`${path} ${set}`);
      });
      this.tellAgain(entry, fresh);
    }
  }

  private tellAgain({ whole }: Entry, fresh: ReadonlySet<string>): void {
    const entry = this.entries.get(`${whole.rollout} ${whole.epoch} ${whole.worker}`);
    if (!entry) return;
    entry.news = true;
    for (const path of fresh) entry.fresh.add(path);
  }
}

/** Sets only grow, so the one heard last is the whole one. */
function keepSets(into: WorkerEvidence, before: WorkerEvidence): void {
  for (const { side, view } of views)
    for (const [name, { seen, hit }] of Object.entries(before[side][view])) {
      const metric = into[side][view][name];
      if (!metric) continue;
      if (seen !== undefined) metric.seen ??= seen;
      if (hit !== undefined) metric.hit ??= hit;
    }
}
