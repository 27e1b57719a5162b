import { type ArmEvidence, canonicalJson, type PairEvidence, type WorkerEvidence } from '@perch/contracts';
import { type BucketSet, emptyBuckets, joinBuckets } from '../statistics/buckets.decide.ts';
import { readSet } from './bucket-set.decide.ts';

/** Why a row of a report is left out. None of them touches its neighbours. */
export type Refusal = 'unknown_rollout' | 'finished_rollout' | 'future_epoch' | 'backwards' | 'malformed';

export interface ReportedRollout {
  id: string;
  endpoint: string;
  epoch: number;
  over: boolean;
  sticky: boolean;
}

export interface Count {
  n: number;
  x: number;
}
export interface ArmCounts {
  ended: Record<string, Count>;
  closed: Record<string, Count>;
  bad?: number | undefined;
  /** On their way: as it was told last, and free to fall. */
  open?: number | undefined;
}
/** What is kept of a worker's report: all but the buckets, which are joined over all routers. */
export interface WorkerCounts {
  stable: ArmCounts;
  candidate: ArmCounts;
  pairs?: PairEvidence | undefined;
  fallbacks: number;
  keyless: number;
}

export interface CountRow {
  rollout: string;
  epoch: number;
  worker: number;
  counts: WorkerCounts;
  /** Goes up with each write; a write wants the one before. */
  turn: number;
}
export interface SetRow {
  rollout: string;
  epoch: number;
  arm: 'stable' | 'candidate';
  phase: 'ended' | 'closed';
  metric: string;
  seen: BucketSet;
  hit: BucketSet;
}
export interface ReportPlan {
  rows: CountRow[];
  sets: SetRow[];
  /** Endpoints to be looked at; true: at once, the candidate had an event. */
  wake: Map<string, boolean>;
  refused: { rollout: string; epoch: number; worker: number; reason: Refusal }[];
}

export const rowKey = ({ rollout, epoch, worker }: { rollout: string; epoch: number; worker: number }): string =>
  `${rollout} ${epoch} ${worker}`;

const arms = ['stable', 'candidate'] as const;
const phases = ['ended', 'closed'] as const;
const mostMetrics = 64;
const mostWorker = 2 ** 31 - 1;

const countsOf = ({ ended, closed, bad, open }: ArmEvidence): ArmCounts => {
  const plain = (metrics: ArmEvidence['ended']) =>
    Object.fromEntries(Object.entries(metrics).map(([metric, { n, x }]) => [metric, { n, x }]));
  return {
    ended: plain(ended),
    closed: plain(closed),
    ...(bad === undefined ? {} : { bad }),
    ...(open === undefined ? {} : { open }),
  };
};

const workerCounts = ({ stable, candidate, pairs, fallbacks, keyless }: WorkerEvidence): WorkerCounts => ({
  stable: countsOf(stable),
  candidate: countsOf(candidate),
  ...(pairs ? { pairs } : {}),
  fallbacks,
  keyless,
});

/** Every cumulative number of a report with a name of its own; what is left out is 0. */
export function figuresOf({ stable, candidate, pairs, fallbacks, keyless }: WorkerCounts): Map<string, number> {
  const figures = new Map<string, number>([
    ['fallbacks', fallbacks],
    ['keyless', keyless],
  ]);
  for (const [arm, counts] of Object.entries({ stable, candidate })) {
    figures.set(`${arm}.bad`, counts.bad ?? 0);
    for (const phase of phases)
      for (const [metric, { n, x }] of Object.entries(counts[phase]))
        figures.set(`${arm}.${phase}.${metric}.n`, n).set(`${arm}.${phase}.${metric}.x`, x);
  }
  if (!pairs) return figures;
  for (const name of ['pairs', 'agree', 'compared', 'dropped'] as const) figures.set(`pairs.${name}`, pairs[name]);
  for (const [metric, sides] of Object.entries(pairs.discordant))
    for (const arm of arms) figures.set(`pairs.${metric}.${arm}`, sides[arm]);
  return figures;
}

export function goesBackwards(before: WorkerCounts, now: WorkerCounts): boolean {
  const figures = figuresOf(now);
  return [...figuresOf(before)].some(([name, figure]) => (figures.get(name) ?? 0) < figure);
}

/** Ids come from outside: what is no uuid is of no rollout. */
export const isRolloutId = (id: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);

const isName = (metric: string) => /^[a-z][a-z0-9_]{0,63}$/.test(metric);

function isMalformed(row: WorkerEvidence): boolean {
  if (row.worker > mostWorker) return true;
  const metrics = arms.flatMap((arm) => phases.map((phase) => row[arm][phase]));
  const { pairs } = row;
  if (pairs && (pairs.agree > pairs.compared || pairs.compared > pairs.pairs)) return true;
  if (pairs && (Object.keys(pairs.discordant).length > mostMetrics || !Object.keys(pairs.discordant).every(isName)))
    return true;
  return metrics.some((byMetric) => {
    const entries = Object.entries(byMetric);
    const wrong = ([metric, { n, x, seen, hit }]: (typeof entries)[number]) =>
      !isName(metric) || x > n || !readSet(seen) || !readSet(hit);
    return entries.length > mostMetrics || entries.some(wrong);
  });
}

const candidateEvents = (counts: WorkerCounts | undefined): number => {
  if (!counts) return 0;
  const discordant = Object.values(counts.pairs?.discordant ?? {}).reduce((sum, { candidate }) => sum + candidate, 0);
  return Object.values(counts.candidate.ended).reduce((sum, { x }) => sum + x, discordant);
};

function setsOf(row: WorkerEvidence): SetRow[] {
  const { rollout, epoch } = row;
  return arms.flatMap((arm) =>
    phases.flatMap((phase) =>
      Object.entries(row[arm][phase]).flatMap(([metric, { seen, hit }]) => {
        if (!seen && !hit) return [];
        const hits = readSet(hit) ?? emptyBuckets();
        return [
          { rollout, epoch, arm, phase, metric, seen: joinBuckets([readSet(seen) ?? emptyBuckets(), hits]), hit: hits },
        ];
      }),
    ),
  );
}

function joinRows(rows: readonly SetRow[]): SetRow[] {
  const joined = new Map<string, SetRow>();
  for (const row of rows) {
    const key = `${row.rollout} ${row.epoch} ${row.arm} ${row.phase} ${row.metric}`;
    const before = joined.get(key);
    joined.set(
      key,
      before ? { ...row, seen: joinBuckets([before.seen, row.seen]), hit: joinBuckets([before.hit, row.hit]) } : row,
    );
  }
  return [...joined.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
}

/** What becomes of one report, given what is known of its rollouts and what was stored before of the same boot. */
export function planReport(
  evidence: readonly WorkerEvidence[],
  rollouts: ReadonlyMap<string, ReportedRollout>,
  stored: ReadonlyMap<string, Pick<CountRow, 'counts' | 'turn'>>,
): ReportPlan {
  const plan: ReportPlan = { rows: [], sets: [], wake: new Map(), refused: [] };
  const taken = new Map<string, CountRow>();
  for (const row of evidence) {
    const { rollout: id, epoch, worker } = row;
    const rollout = rollouts.get(id);
    const key = rowKey(row);
    const before = taken.get(key)?.counts ?? stored.get(key)?.counts;
    const counts = workerCounts(row);
    const reason = refusalOf(row, rollout, before, counts);
    if (reason) plan.refused.push({ rollout: id, epoch, worker, reason });
    if (reason || !rollout) continue;
    if (before && canonicalJson(before as never) === canonicalJson(counts as never) && !hasSets(row)) continue;
    taken.set(key, { rollout: id, epoch, worker, counts, turn: (stored.get(key)?.turn ?? 0) + 1 });
    if (rollout.sticky) plan.sets.push(...setsOf(row));
    const urgent = candidateEvents(counts) > candidateEvents(before);
    plan.wake.set(rollout.endpoint, urgent || (plan.wake.get(rollout.endpoint) ?? false));
  }
  plan.rows = [...taken.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
  plan.sets = joinRows(plan.sets);
  return plan;
}

const hasSets = (row: WorkerEvidence): boolean =>
  arms.some((arm) => phases.some((phase) => Object.values(row[arm][phase]).some(({ seen, hit }) => seen || hit)));

function refusalOf(
  row: WorkerEvidence,
  rollout: ReportedRollout | undefined,
  before: WorkerCounts | undefined,
  counts: WorkerCounts,
): Refusal | undefined {
  if (!rollout) return 'unknown_rollout';
  if (rollout.over) return 'finished_rollout';
  if (row.epoch > rollout.epoch) return 'future_epoch';
  if (isMalformed(row)) return 'malformed';
  if (before && goesBackwards(before, counts)) return 'backwards';
  return undefined;
}
