import { type Actor, AppError, type Diagnosis, type Finding } from '@perch/contracts';

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
  /** What the control plane itself finds. */
  diagnosis: Diagnosis | AppError;
}

const maxSkewMs = 30_000; // signed URLs live for minutes; certificates and keys bear less

const good = (what: string, message: string): Finding => ({ severity: 'ok', what, message, whatToDo: null });
const bad = (what: string, message: string, whatToDo: string): Finding => ({
  severity: 'error',
  what,
  message,
  whatToDo,
});
const warning = (what: string, message: string, whatToDo: string): Finding => ({
  severity: 'warning',
  what,
  message,
  whatToDo,
});

/** Findings in the order in which they are to be dealt with. */
export function diagnose(facts: Facts): Finding[] {
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
    ...installation(facts.diagnosis, facts.whoami),
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

/** What the control plane says of itself and of all behind it. */
function installation(found: Facts['diagnosis'], whoami: Facts['whoami']): Finding[] {
  if (!(found instanceof AppError)) return found.findings;
  if (whoami instanceof AppError) return []; // said already
  if (found.code === 'forbidden')
    return [
      warning(
        'installation',
        `a key of role ${whoami.role} does not see into it`,
        'run it with a key of role operator or more to have database, store, servers and routers looked at',
      ),
    ];
  if (found.code === 'not_found')
    return [
      warning('installation', 'this control plane is of an older release', 'bring it to the release of this program'),
    ];
  return [bad('installation', found.message, 'look into the log of the control plane')];
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
