import type { ApiKey, Finding } from '@perch/contracts';
import type { DatabaseFacts } from '@perch/platform/database';
import type { StoreProbe } from '@perch/registry';
import { type Answer, fine, odd, spanText, wrong } from './findings.ts';

export interface BasicFacts {
  now: number;
  database: Answer<DatabaseFacts>;
  store: Answer<StoreProbe>;
  /** Whether removals are meant: false after the database went back in time. */
  confirmed: Answer<boolean>;
  keys: Answer<ApiKey[]>;
  /** Other machines can reach this program. */
  listensToOthers: boolean;
}

const oldestPostgres = 150_000;
const oddSkewMs = 2_000;
const badSkewMs = 30_000;
const expirySoonMs = 14 * 86_400_000;
const usedLatelyMs = 7 * 86_400_000;

/** What stands below everything else: database, clocks, store, the installation's history, keys. */
export function diagnoseBasics(facts: BasicFacts): Finding[] {
  return [
    ...database(facts.database),
    ...store(facts.store),
    ...installation(facts.confirmed),
    ...keys(facts.keys, facts.now, facts.listensToOthers),
  ];
}

function database(answer: BasicFacts['database']): Finding[] {
  if ('fault' in answer)
    return [wrong('database', answer.fault, 'is PostgreSQL running, and does PERCH_DATABASE_URL name it?')];
  const { serverVersion, missingMigrations, unknownMigrations, clockSkewMs, failingWork } = answer.value;
  const version = `PostgreSQL ${Math.floor(serverVersion / 10_000)}.${serverVersion % 10_000}`;
  const findings: Finding[] = [];
  if (serverVersion < oldestPostgres)
    findings.push(wrong('database', `${version} is older than 15`, 'move to PostgreSQL 15 or later'));
  if (missingMigrations.length > 0)
    findings.push(
      wrong('database', `the schema lacks ${missingMigrations.join(', ')}`, 'run perch migrate against this database'),
    );
  if (unknownMigrations.length > 0)
    findings.push(
      odd(
        'database',
        `the schema has ${unknownMigrations.join(', ')} of a newer release`,
        'bring the control planes to that release; until then they serve on',
      ),
    );
  if (findings.length === 0) findings.push(fine('database', `${version}, schema current`));
  return [...findings, clock(clockSkewMs), ...failingWork.map(failing)];
}

function clock(skewMs: number): Finding {
  const off = Math.abs(skewMs);
  if (off <= oddSkewMs) return fine('clock', `the control plane's clock agrees with the database's (${off} ms)`);
  const words = `the control plane's clock is ${spanText(off)} ${skewMs > 0 ? 'behind' : 'ahead of'} the database's`;
  const todo = 'set both clocks by NTP; signed URLs and expiries depend on them';
  return off > badSkewMs ? wrong('clock', words, todo) : odd('clock', words, todo);
}

const failing = ({ kind, key, attempts, lastError }: DatabaseFacts['failingWork'][number]): Finding =>
  odd(
    `work ${kind}`,
    `${key} failed ${attempts} times in a row: ${lastError}`,
    'look into the log of the control plane; it is tried again by itself',
  );

function store(answer: BasicFacts['store']): Finding[] {
  if ('fault' in answer)
    return [
      wrong(
        'store',
        answer.fault,
        'is the artifact store running, and may we write to it (PERCH_STORE_URL, PERCH_S3_…)?',
      ),
    ];
  const { readsBack, conditionalWrites, checksums, signedUrlFault, tookMs } = answer.value;
  const findings: Finding[] = [];
  if (!readsBack)
    findings.push(
      wrong('store', 'what was written does not come back as it was', 'take another store: this one loses data'),
    );
  if (!conditionalWrites)
    findings.push(
      wrong(
        'store',
        'conditional writes are not honoured (If-None-Match), so a version number could be given twice after a restore',
        'take a store that honours them, or a newer release of this one',
      ),
    );
  if (!checksums)
    findings.push(
      wrong(
        'store',
        'bytes with a wrong SHA-256 checksum are accepted',
        'take a store that compares x-amz-checksum-sha256, or a newer release of this one',
      ),
    );
  if (signedUrlFault !== null)
    findings.push(
      wrong(
        'store',
        `a signed URL cannot be read from here: ${signedUrlFault}`,
        'agents and clients use such URLs: check PERCH_PUBLIC_URL (folder) or PERCH_S3_ENDPOINT',
      ),
    );
  return findings.length > 0 ? findings : [fine('store', `writes, reads and deletes (${tookMs} ms)`)];
}

function installation(answer: BasicFacts['confirmed']): Finding[] {
  if ('fault' in answer) return [];
  if (answer.value) return [fine('installation', 'its history is confirmed')];
  return [
    wrong(
      'installation',
      'the database went back in time (restored from a backup?); nothing is removed from servers until somebody confirms',
      'compare perch model list and perch endpoint list with what you expect, upload what is missing, then perch fleet confirm',
    ),
  ];
}

function keys(answer: BasicFacts['keys'], now: number, listensToOthers: boolean): Finding[] {
  if ('fault' in answer) return [];
  const live = answer.value.filter(({ revokedAt }) => revokedAt === null);
  const findings = live.flatMap((key) => expiry(key, now));
  const bootstrap = live.find(({ id }) => id === 'pk_bootstrap');
  const usedMs = bootstrap?.lastUsedAt ? now - Date.parse(bootstrap.lastUsedAt) : Number.POSITIVE_INFINITY;
  if (listensToOthers && usedMs < usedLatelyMs)
    findings.push(
      odd(
        'keys',
        `the admin key of the settings (PERCH_BOOTSTRAP_ADMIN_KEY) was used ${spanText(usedMs)} ago`,
        'make a key for each person and program (perch key create), take it out of the settings, and perch key revoke pk_bootstrap',
      ),
    );
  return findings.length > 0 ? findings : [fine('keys', `${live.length} in force, none about to run out`)];
}

function expiry({ name, id, expiresAt, lastUsedAt }: ApiKey, now: number): Finding[] {
  if (!expiresAt) return [];
  const leftMs = Date.parse(expiresAt) - now;
  if (leftMs > expirySoonMs) return [];
  const inUse = lastUsedAt ? now - Date.parse(lastUsedAt) < usedLatelyMs : false;
  const todo = `make a new one (perch key create) and hand it to whoever uses ${name}`;
  if (leftMs > 0) return [odd('keys', `key ${name} (${id}) runs out in ${spanText(leftMs)}`, todo)];
  return inUse ? [odd('keys', `key ${name} (${id}) ran out ${spanText(-leftMs)} ago and was in use`, todo)] : [];
}
