import type { RouterReport, Route, RouteTarget, TableKey, TableServer, WorkerEvidence } from '@perch/contracts';

export interface Sections {
  endpoints?: Record<string, Route>;
  servers?: Record<string, TableServer>;
  keys?: Record<string, TableKey>;
  confirmed?: boolean;
}

export interface ControlStub {
  address: string;
  joinKey: string;
  /** What it counted, by endpoint and version: the newest it told of each. */
  counts: NonNullable<RouterReport['stats']>;
  /** What each worker told last of each epoch of a rollout: `<rollout> <epoch> <worker>`. */
  evidence: Map<string, WorkerEvidence>;
  /** The same of every boot of every router, sets of buckets joined. */
  evidenceByBoot: Map<string, WorkerEvidence>;
  refuseReports(refuse: boolean): void;
  reports: (NonNullable<RouterReport['report']> & { at: number })[];
  readonly lineage: string;
  readonly revision: number;
  readonly enrolments: number;
  publish(sections: Sections): number;
  restore(): void;
  forgetTokens(): void;
  addBlob(path: string, bytes: Uint8Array): RouteTarget['files'][number];
  close(): Promise<void>;
}

export function startControlStub(options?: { port?: number; joinKey?: string }): Promise<ControlStub>;
export function target(
  fields: Partial<RouteTarget> & Pick<RouteTarget, 'deployment' | 'tritonModel' | 'servers'>,
): RouteTarget;
export function route(targets: RouteTarget[], fields?: Partial<Route>): Route;
