import type { RouteTarget } from '@perch/contracts';
import type { LoadedProcessing } from '@perch/processing/host';
import type { ArmStats } from './request-stats.ts';
import type { Upstream } from './upstream.ts';

/** Requests in hand on one deployment as one table listed it; outlives that table. */
export interface Gauge {
  inFlight: number;
  /** Where these requests may be sent. */
  readonly servers: readonly string[];
  /** What these requests run through; not unloaded before they have ended. */
  readonly processing?: LoadedProcessing;
}

/** A target that this process can serve: its processing is loaded, its servers are known. */
export interface Deployment {
  readonly target: RouteTarget;
  readonly processing: LoadedProcessing;
  readonly upstreams: readonly Upstream[];
  readonly gauge: Gauge;
  readonly stats: ArmStats;
  /** Header lines of every reply it gives. */
  readonly replyLines: string;
}

export const armLines = (version: string, arm: string): string =>
  `x-perch-version: ${version}\r\nx-perch-arm: ${arm}\r\n`;
