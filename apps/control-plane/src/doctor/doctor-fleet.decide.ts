import type { EndpointStatus, Finding, Router, Server } from '@perch/contracts';
import { type Answer, bytesText, fine, odd, spanText, wrong } from './findings.ts';

/** Documents as published: revision, and for how long that is so. */
export interface PublishedDocument {
  revision: number;
  ageMs: number;
}
export interface EndpointFacts {
  name: string;
  pool: string;
  stopped: boolean;
  status: EndpointStatus;
}
export interface FleetFacts {
  now: number;
  servers: Answer<Server[]>;
  routers: Answer<Router[]>;
  endpoints: Answer<EndpointFacts[]>;
  table: PublishedDocument | null;
  /** By server id. */
  documents: ReadonlyMap<string, PublishedDocument>;
  lineage: string | null;
}

const lowDiskBytes = 2_000_000_000;
const verylowDiskBytes = 200_000_000;
/** Following takes a second; later than this something is in the way. */
const behindMs = 60_000;
const manyRestarts = 3;
const consoleShown = 3;
const mostEndpoints = 20;

/** Servers, pools, routers, endpoints. */
export function diagnoseFleet(facts: FleetFacts): Finding[] {
  return [...servers(facts), ...pools(facts), ...routers(facts), ...endpoints(facts.endpoints)];
}

function servers(facts: FleetFacts): Finding[] {
  const { servers: answer } = facts;
  if ('fault' in answer) return [wrong('servers', answer.fault, 'look into the log of the control plane')];
  if (answer.value.length === 0)
    return [
      wrong('servers', 'none has joined', 'start an agent beside a Triton with a join key: perch key join --server'),
    ];
  return [...answer.value.flatMap((server) => serverFindings(server, facts)), ...differences(answer.value)];
}

function serverFindings(server: Server, facts: FleetFacts): Finding[] {
  const what = `server ${server.name}`;
  const { observed, external } = server;
  if (external && (!server.live || external.problem !== null))
    return [
      wrong(
        what,
        `does not answer: ${external.problem ?? 'not asked yet'}`,
        'it has no agent: the control plane must reach its gRPC address, with the header that its restricted protocols want',
      ),
    ];
  if (!server.live)
    return [
      wrong(
        what,
        `silent for ${spanText(facts.now - Date.parse(server.lastSeenAt ?? ''))}`,
        'is its agent running, and does it reach the control plane? A machine that is gone for good goes with perch gc',
      ),
    ];
  if (observed === null)
    return [odd(what, 'has joined and not reported yet', 'look into the log of its agent if this stays')];
  const findings = [
    ...tritonFindings(what, server, observed),
    ...step(what, server, observed, facts),
    ...modelFindings(what, observed),
    ...(external ? [] : disk(what, observed)),
  ];
  if (server.drain)
    findings.push(
      odd(
        what,
        `${server.drain.drained ? 'drained' : 'draining'} since ${server.drain.since} by ${server.drain.by}${server.drain.reason ? ` (${server.drain.reason})` : ''}`,
        `when its maintenance is over: perch fleet undrain ${server.name}`,
      ),
    );
  return findings.length > 0 ? findings : [fine(what, summary(observed))];
}

type Observed = NonNullable<Server['observed']>;

function summary({ triton, models, disk: { freeBytes }, facts }: Observed): string {
  const parts = [`${triton.name} ${triton.version}`, `${Object.keys(models).length} models`];
  if (facts?.backends) parts.push(`back-ends ${facts.backends.join(', ') || 'none'}`);
  if (facts?.tensorrt) parts.push(`TensorRT ${facts.tensorrt}`);
  const gpus = facts?.gpus.length ?? triton.gpus;
  if (gpus > 0) parts.push(`${gpus} GPUs`);
  return [...parts, ...(freeBytes > 0 ? [`${bytesText(freeBytes)} of disk free`] : [])].join('; ');
}

function tritonFindings(what: string, { http }: Server, { triton, supervision }: Observed): Finding[] {
  const findings: Finding[] = [];
  if (!triton.live) {
    const tail = supervision?.console.slice(-consoleShown).join(' | ');
    const exit = supervision?.lastExit ? ` (${supervision.lastExit})` : '';
    findings.push(
      wrong(
        what,
        `its Triton does not answer at ${http}${exit}${tail ? `; its console ended: ${tail}` : ''}`,
        supervision
          ? 'the agent starts it again; mend what its console says'
          : 'start it; the agent loads everything again by itself',
      ),
    );
  }
  if (supervision && supervision.restarts >= manyRestarts)
    findings.push(
      odd(
        what,
        `its Triton was started again ${supervision.restarts} times; it ended last: ${supervision.lastExit ?? 'for an unknown reason'}`,
        'read its console with perch fleet show, and look for a model that takes too much memory',
      ),
    );
  return findings;
}

/** Whether the agent follows what it is told. */
function step(what: string, { id }: Server, { revision, heldRemovals }: Observed, facts: FleetFacts): Finding[] {
  const findings: Finding[] = [];
  const told = facts.documents.get(id);
  if (told && revision < told.revision && told.ageMs > behindMs)
    findings.push(
      wrong(
        what,
        `follows revision ${revision}, and revision ${told.revision} was published ${spanText(told.ageMs)} ago`,
        'look into the log of its agent',
      ),
    );
  if (heldRemovals.length > 0)
    findings.push(
      odd(
        what,
        `keeps ${heldRemovals.length} models that an unconfirmed document would remove`,
        'if that removal is meant: perch fleet confirm',
      ),
    );
  return findings;
}

function modelFindings(what: string, { models }: Observed): Finding[] {
  return Object.entries(models)
    .filter(([, { state }]) => state === 'failed' || state === 'stuck')
    .map(([name, { state, reason }]) => {
      const words = `${name} ${state}: ${reason ?? 'no reason given'}`;
      if (/crashes its server/.test(reason ?? ''))
        return wrong(what, words, 'it is held back until its files or settings change: upload a version that does not');
      if (state === 'stuck')
        return wrong(what, words, 'a supervised Triton is restarted by itself; restart any other by hand');
      return wrong(what, words, 'mend the model and upload it again; older versions go on serving');
    });
}

function disk(what: string, { disk: { freeBytes, cacheBytes } }: Observed): Finding[] {
  if (freeBytes >= lowDiskBytes) return [];
  const words = `only ${bytesText(freeBytes)} of disk free (${bytesText(cacheBytes)} are cached models)`;
  const todo = 'make room: loads fail when the disk is full';
  return [freeBytes < verylowDiskBytes ? wrong(what, words, todo) : odd(what, words, todo)];
}

/** A plan of TensorRT runs on the version that built it; replicas of one pool should be alike. */
function differences(all: readonly Server[]): Finding[] {
  const live = all.filter(({ live: is, observed }) => is && observed?.triton.live);
  return [...new Set(live.map(({ pool }) => pool))].flatMap((pool) => {
    const own = live.filter((server) => server.pool === pool);
    const differing = (name: string, of: (observed: Observed) => string | null | undefined) => {
      const found = [...new Set(own.map(({ observed }) => of(observed!)).filter((one) => one))].sort();
      return found.length > 1
        ? [
            odd(
              `pool ${pool}`,
              `its servers have ${name} ${found.join(' and ')}`,
              'bring them to one version (perch fleet roll)',
            ),
          ]
        : [];
    };
    return [
      ...differing('Triton', ({ triton }) => triton.version),
      ...differing('TensorRT', ({ facts }) => facts?.tensorrt),
    ];
  });
}

function pools({ servers: found, endpoints: wished }: FleetFacts): Finding[] {
  if ('fault' in found || 'fault' in wished) return [];
  const live = new Set(found.value.filter((server) => server.live && !server.drain).map(({ pool }) => pool));
  const wanted = wished.value.filter(({ stopped, pool }) => !stopped && !live.has(pool));
  return [...new Set(wanted.map(({ pool }) => pool))].sort().map((pool) => {
    const names = wanted.filter((one) => one.pool === pool).map(({ name }) => name);
    const more = names.length > 3 ? ` and ${names.length - 3} more` : '';
    return wrong(
      `pool ${pool}`,
      `has no live server, and ${names.slice(0, 3).join(', ')}${more} want it`,
      `join servers to it: perch key join --server --pool ${pool}`,
    );
  });
}

function routers({ routers: answer, now, table, lineage }: FleetFacts): Finding[] {
  if ('fault' in answer) return [wrong('routers', answer.fault, 'look into the log of the control plane')];
  if (!answer.value.some(({ live }) => live))
    return [
      wrong('routers', 'none is live, so nothing is served', 'start one with a join key: perch key join --router'),
    ];
  return answer.value.flatMap((one) => {
    const what = `router ${one.name}`;
    if (!one.live)
      return [
        odd(
          what,
          `silent for ${spanText(now - Date.parse(one.lastSeenAt ?? ''))}`,
          `old versions stay loaded until it is back or forgotten: perch fleet forget-router ${one.id}`,
        ),
      ];
    const findings = Object.values(one.problems).map((problem) =>
      wrong(what, problem, 'the version cannot be processed there; mend it and publish again'),
    );
    if (one.held)
      findings.push(
        odd(
          what,
          'holds back an unconfirmed table',
          'after a restore: look at what would go, then perch fleet confirm',
        ),
      );
    const behind = table && (one.lineage !== lineage || (one.revision ?? 0) < table.revision);
    if (behind && !one.held && table.ageMs > behindMs)
      findings.push(
        wrong(
          what,
          `serves from revision ${one.revision ?? 'none'}, and revision ${table.revision} was published ${spanText(table.ageMs)} ago`,
          'look into its log',
        ),
      );
    return findings.length > 0 ? findings : [fine(what, `serves from table ${one.revision ?? 'none yet'}`)];
  });
}

function endpoints(answer: FleetFacts['endpoints']): Finding[] {
  if ('fault' in answer) return [wrong('endpoints', answer.fault, 'look into the log of the control plane')];
  const running = answer.value.filter(({ stopped }) => !stopped);
  const troubled = running.filter(({ status }) => status.phase === 'blocked' || status.phase === 'invalid');
  const findings = troubled.slice(0, mostEndpoints).map(({ name, status }) => {
    const serves = status.servingVersions.length > 0;
    const waits = status.reason === 'no_model' || status.reason === 'no_version';
    return (serves || waits ? odd : wrong)(`endpoint ${name}`, status.message, `perch endpoint why ${name}`);
  });
  if (troubled.length > mostEndpoints)
    findings.push(wrong('endpoints', `${troubled.length - mostEndpoints} more are blocked`, 'perch endpoint list'));
  const stopped = answer.value.length - running.length;
  const words = `${running.length} endpoints${stopped > 0 ? `, and ${stopped} stopped` : ''}`;
  return findings.length > 0 ? findings : [fine('endpoints', `${words}, none blocked`)];
}
