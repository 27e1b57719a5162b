import type { ReportBody } from './router.store.ts';

export interface RouterFacts {
  name: string;
  report: ReportBody | null;
  quietMs: number;
}

export interface UnloadWish {
  deployment: string;
  /** Null: no table that was ever published held it on this server. */
  routedRevision: number | null;
  /** First revision without it; null: the table in force still holds it. */
  unroutedRevision: number | null;
  /** Since when; for a deployment that lives on elsewhere, routers do not count its requests a server. */
  unroutedMs: number | null;
}

/**
 * Why a model must stay loaded for now, or undefined when nobody can send to it any more: every live router (heard
 * within `routerGraceMs`, not forgotten) follows a table without it and has no request for it in flight. `settleMs`
 * is waited after the removal when the deployment itself stays in the table.
 */
export function unloadObstacle(
  wish: UnloadWish,
  routers: readonly RouterFacts[],
  lineage: string,
  routerGraceMs: number,
  settleMs: number,
): string | undefined {
  if (wish.routedRevision === null) return undefined;
  if (wish.unroutedRevision === null) return 'the routing table still holds it';
  if ((wish.unroutedMs ?? 0) < settleMs) return 'requests that are on their way may still arrive';
  for (const { name, report, quietMs } of routers) {
    if (quietMs > routerGraceMs) continue;
    if (report === null || report.lineage !== lineage || report.revision < wish.unroutedRevision)
      return `router ${name} has not taken a table without it yet`;
    if (report.held) return `router ${name} holds back an unconfirmed table; see "perch fleet confirm"`;
    const inFlight = report.inFlight[wish.deployment] ?? 0;
    if (inFlight > 0) return `router ${name} still has ${inFlight} requests in flight`;
  }
  return undefined;
}
