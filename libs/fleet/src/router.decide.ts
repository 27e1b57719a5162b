import type { ReportBody } from './router.store.ts';

export interface RouterFacts {
  name: string;
  report: ReportBody | null;
  quietMs: number;
}

export interface UnloadWish {
  deployment: string;
  /** Where it leaves while the deployment stays in the table; left out: the deployment leaves the table altogether. */
  server?: string;
  /** Null: no table that was ever published held it on this server. */
  routedRevision: number | null;
  /** First revision without it; null: the table in force still holds it. */
  unroutedRevision: number | null;
  /** Since when. */
  unroutedMs: number | null;
}

/**
 * Why a model must stay loaded for now, or undefined when nobody can send to it any more: every live router (heard
 * within `routerGraceMs`, not forgotten) follows a table without it and has no request for it in flight. `settleMs`
 * is waited after the removal when the deployment itself stays in the table and a router does not tell which servers the
 * requests in its hands may still go to.
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
  for (const { name, report, quietMs } of routers) {
    if (quietMs > routerGraceMs) continue;
    if (report === null || report.lineage !== lineage || report.revision < wish.unroutedRevision)
      return `router ${name} has not taken a table without it yet`;
    if (report.held) return `router ${name} holds back an unconfirmed table; see "perch fleet confirm"`;
    if (wish.server !== undefined && !report.unlisted && (wish.unroutedMs ?? 0) < settleMs)
      return 'requests that are on their way may still arrive';
    const elsewhere = wish.server === undefined ? 0 : (report.unlisted?.[`${wish.deployment} ${wish.server}`] ?? 0);
    const inFlight = (report.inFlight[wish.deployment] ?? 0) + elsewhere;
    if (inFlight > 0) return `router ${name} still has ${inFlight} requests in flight`;
  }
  return undefined;
}
