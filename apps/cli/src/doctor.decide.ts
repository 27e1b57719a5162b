import { type Actor, AppError, type InstallationStatus, type Router, type Server } from '@perch/contracts';
import { formatAge, formatBytes } from './duration.ts';

export interface Health {
  ready: boolean;
  checks: Record<string, { up: boolean; reason?: string }>;
  /** This computer's clock minus the server's. */
  skewMs?: number | undefined;
}
/** What was asked, each with its answer or why there is none. */
export interface Facts {
  context: string;
  url: string;
  routerUrl: string | undefined;
  controlPlane: Health | AppError;
  router: Health | AppError | undefined;
  whoami: Actor | AppError;
  status: InstallationStatus | AppError;
  servers: Server[] | AppError;
  routers: Router[] | AppError;
}
export interface Finding {
  level: 'good' | 'warning' | 'bad';
  what: string;
  finding: string;
  /** What to do about it. */
  todo?: string;
}

const maxSkewMs = 30_000; // signed URLs live for minutes; certificates and keys bear less
const minFreeBytes = 2_000_000_000;

const good = (what: string, finding: string): Finding => ({ level: 'good', what, finding });
const bad = (what: string, finding: string, todo: string): Finding => ({ level: 'bad', what, finding, todo });
const warning = (what: string, finding: string, todo: string): Finding => ({ level: 'warning', what, finding, todo });

/** Findings in the order in which they are to be dealt with. */
export function diagnose(facts: Facts, now: number): Finding[] {
  if (facts.controlPlane instanceof AppError)
    return [
      bad(
        'control plane',
        facts.controlPlane.message,
        `is ${facts.url} right (context ${facts.context})? Start it with perch up, or save another address with perch login`,
      ),
    ];
  return [
    ...program('control plane', facts.url, facts.controlPlane),
    ...clock(facts.controlPlane.skewMs),
    ...key(facts.whoami),
    ...lineage(facts.status),
    ...servers(facts.servers, now),
    ...routers(facts.routers, now),
    ...router(facts),
  ];
}

const remedies: Record<string, string> = {
  database: 'is PostgreSQL running, and does PERCH_DATABASE_URL name it? perch migrate --postgres URL tells more',
  store: 'is the artifact store running, and may the control plane write to it (PERCH_STORE_URL, PERCH_S3_…)?',
  table: 'the router never had a table: does it reach the control plane (PERCH_CONTROL_URL), and is its join key good?',
};

function program(what: string, url: string, { ready, checks }: Health): Finding[] {
  const faults = Object.entries(checks ?? {}).filter(([, check]) => !check.up);
  if (ready && faults.length === 0) return [good(what, `${url} is ready`)];
  if (faults.length === 0) return [bad(what, `${url} is not ready`, 'look into its log')];
  return faults.map(([name, { reason }]) =>
    bad(
      `${what}: ${name}`,
      reason ?? 'down',
      Object.entries(remedies).find(([word]) => name.includes(word))?.[1] ?? 'look into its log',
    ),
  );
}

function clock(skewMs: number | undefined): Finding[] {
  if (skewMs === undefined) return [];
  if (Math.abs(skewMs) <= maxSkewMs)
    return [good('clock', `within ${Math.ceil(Math.abs(skewMs) / 1_000)} s of the control plane's`)];
  const how = `${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the control plane's`;
  return [bad('clock', `this computer's clock is ${how}`, 'set both clocks by NTP; signed URLs depend on them')];
}

function key(whoami: Facts['whoami']): Finding[] {
  if (!(whoami instanceof AppError)) return [good('key', `${whoami.name} (${whoami.role})`)];
  return [bad('key', whoami.message, 'save a good key with perch login, or set PERCH_API_KEY')];
}

function lineage(status: Facts['status']): Finding[] {
  if (status instanceof AppError)
    return status.code === 'forbidden'
      ? []
      : [bad('installation', status.message, 'look into the log of the control plane')];
  if (status.confirmed) return [good('installation', `version ${status.version}`)];
  return [
    bad(
      'installation',
      'the database went back in time (restored from a backup?); nothing is removed from servers until somebody confirms',
      'compare perch model list and perch endpoint list with what you expect, upload what is missing, then perch fleet confirm',
    ),
  ];
}

function servers(found: Facts['servers'], now: number): Finding[] {
  if (found instanceof AppError)
    return found.code === 'forbidden' ? [] : [bad('servers', found.message, 'look into the log of the control plane')];
  if (found.length === 0)
    return [
      bad('servers', 'none has joined', 'start an agent beside a Triton with a join key: perch key join --server'),
    ];
  return found.flatMap((server) => serverFindings(server, now));
}

function serverFindings(server: Server, now: number): Finding[] {
  const what = `server ${server.name}`;
  if (!server.live || !server.observed)
    return [
      bad(
        what,
        `silent; last heard of ${formatAge(server.lastSeenAt, now)}`,
        'is its agent running, and does it reach the control plane?',
      ),
    ];
  const { triton, disk, models, heldRemovals } = server.observed;
  const findings: Finding[] = [];
  if (!triton.live)
    findings.push(
      bad(
        what,
        `its Triton does not answer at ${server.http}`,
        'start Triton; the agent loads everything again by itself',
      ),
    );
  const failed = Object.entries(models).filter(([, { state }]) => state === 'failed' || state === 'stuck');
  for (const [name, { state, reason }] of failed)
    findings.push(
      bad(
        what,
        `${name} ${state}: ${reason ?? 'no reason given'}`,
        'mend the model and upload it again; older versions go on serving',
      ),
    );
  if (disk.freeBytes < minFreeBytes)
    findings.push(
      warning(what, `only ${formatBytes(disk.freeBytes)} of disk free`, 'make room; loads fail when the disk is full'),
    );
  if (heldRemovals.length > 0)
    findings.push(
      warning(
        what,
        `keeps ${heldRemovals.length} models that an unconfirmed document would remove`,
        'if that removal is meant: perch fleet confirm',
      ),
    );
  return findings.length > 0
    ? findings
    : [
        good(
          what,
          `${triton.name} ${triton.version}, ${Object.keys(models).length} models, ${formatBytes(disk.freeBytes)} free`,
        ),
      ];
}

function routers(found: Facts['routers'], now: number): Finding[] {
  if (found instanceof AppError)
    return found.code === 'forbidden' ? [] : [bad('routers', found.message, 'look into the log of the control plane')];
  if (!found.some(({ live }) => live))
    return [bad('routers', 'none is live, so nothing is served', 'start one with a join key: perch key join --router')];
  return found.map((one) => {
    const what = `router ${one.name}`;
    const [problem] = Object.values(one.problems ?? {});
    if (!one.live)
      return warning(
        what,
        `silent; last heard of ${formatAge(one.lastSeenAt, now)}`,
        `old versions stay loaded until it is back or forgotten: perch fleet forget-router ${one.id}`,
      );
    if (problem) return bad(what, problem, 'the version cannot be processed there; mend it and publish again');
    return good(what, `serves from table ${one.revision ?? 'none yet'}`);
  });
}

function router({ router: found, routerUrl, context }: Facts): Finding[] {
  if (!found)
    return [
      warning(
        'router address',
        `context ${context} names no router`,
        'save it with perch login --router URL; endpoint infer wants it',
      ),
    ];
  if (found instanceof AppError) return [bad('router address', found.message, `is ${routerUrl} right?`)];
  return program('router address', routerUrl as string, found);
}
