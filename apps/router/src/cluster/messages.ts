import type { WorkerEvidence } from '@perch/contracts';
import type { MetricFamily } from '../metrics/snapshot.ts';
import type { VersionCounts } from '../serving/count.source.ts';
import type { WorkerState } from '../serving/serving-tables.ts';

/**
 * What the first process of a router tells its workers. `table`: a new one lies on disk; `evidence`: tell me yours;
 * `accepted`: a report that left at this time (`monotonicMs`) was; `stop`: answer what is in hand and end.
 */
export type ToWorker =
  | { kind: 'table' }
  | { kind: 'evidence'; id: number }
  | { kind: 'accepted'; atMs: number }
  | { kind: 'stop' }
  | { kind: 'count'; id: number }
  | { kind: 'counts'; id: number; snapshots: MetricFamily[][] };

/** What a worker tells. `served`: counts of versions that changed. `evidence`: what changed, `id` of the question or 0 at its end. `scrape`: somebody reads /metrics here, tell me everybody's counts. */
export type FromWorker =
  | { kind: 'listening'; address: string }
  | { kind: 'state'; state: WorkerState }
  | { kind: 'served'; counts: VersionCounts[] }
  | { kind: 'evidence'; id: number; evidence: WorkerEvidence[] }
  | { kind: 'scrape'; id: number }
  | { kind: 'counted'; id: number; families: MetricFamily[] };
