import type { RouterReport, Route, RouteTarget, TableKey, TableServer } from '@perch/contracts';

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
