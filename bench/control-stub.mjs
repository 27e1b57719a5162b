/**
 * A stand-in control plane: the internal API that a router needs, fed by hand, without a database. For the bench and for
 * the router's own tests.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const sameJson = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function diff(before, after) {
  const patch = {};
  for (const section of ['endpoints', 'servers', 'keys']) {
    const changes = {};
    for (const [key, value] of Object.entries(after[section]))
      if (!sameJson(before[section][key], value)) changes[key] = value;
    for (const key of Object.keys(before[section])) if (!(key in after[section])) changes[key] = null;
    if (Object.keys(changes).length > 0) patch[section] = changes;
  }
  return patch;
}

/** Keeps what was told of sets of buckets where newer evidence leaves them out, as the control plane does. */
function joinSets(before, now) {
  for (const side of ['stable', 'candidate'])
    for (const view of ['ended', 'closed'])
      for (const [metric, counts] of Object.entries(now[side][view]))
        now[side][view][metric] = { ...before?.[side][view][metric], ...counts };
  return now;
}

async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return pieces.length ? JSON.parse(Buffer.concat(pieces).toString()) : undefined;
}

/** `joinKey` is what a router enrols with. `port` 0 takes a free one. */
export async function startControlStub({ port = 0, joinKey = 'join' } = {}) {
  const tables = new Map();
  const blobs = new Map();
  const reports = [];
  const counts = {};
  const evidence = new Map();
  const evidenceByBoot = new Map();
  const hashes = new Map();
  const waiting = new Set();
  let token = randomUUID();
  let lineage = randomUUID();
  let revision = 0;
  let enrolments = 0;
  let refusing = false;

  const answerTable = (url, response) => {
    const after = Number(url.searchParams.get('after') ?? -1);
    const follows = url.searchParams.get('lineage') === lineage;
    const table = tables.get(revision);
    if (follows && after === revision) {
      response.writeHead(304).end();
      return;
    }
    const base = follows ? tables.get(after) : undefined;
    const { endpoints, servers, keys, ...head } = table;
    const answer = base ? { kind: 'patch', base: after, ...head, patch: diff(base, table) } : { kind: 'whole', document: table };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  };

  const poll = (url, response) => {
    const current = url.searchParams.get('lineage') === lineage && Number(url.searchParams.get('after')) === revision;
    const waitMs = Number(url.searchParams.get('wait') ?? 0) * 1_000;
    if (revision > 0 && (!current || waitMs === 0)) return answerTable(url, response);
    const entry = { wake: () => {} };
    const timer = setTimeout(() => entry.wake(), waitMs || 1_000);
    entry.wake = () => {
      clearTimeout(timer);
      waiting.delete(entry);
      if (revision > 0) answerTable(url, response);
      else response.writeHead(304).end();
    };
    waiting.add(entry);
    response.on('close', () => {
      clearTimeout(timer);
      waiting.delete(entry);
    });
  };

  const json = (response, value) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://stub');
    const secret = request.headers.authorization?.slice(7);
    if (url.pathname.startsWith('/blobs/')) {
      const bytes = blobs.get(url.pathname.slice(7));
      response.writeHead(bytes ? 200 : 404).end(bytes);
      return;
    }
    const body = await bodyOf(request);
    if (url.pathname === '/internal/v1/enrol') {
      if (secret !== joinKey) return void response.writeHead(401).end();
      enrolments += 1;
      return json(response, { id: 'router-1', token, pool: null });
    }
    if (secret !== token) return void response.writeHead(401).end();
    if (url.pathname === '/internal/v1/routing-table') return poll(url, response);
    if (url.pathname === '/internal/v1/blobs/urls') {
      const known = body.hashes.filter((hash) => blobs.has(hash));
      const urls = known.map((hash) => [hash, { url: `${address}/blobs/${hash}`, size: blobs.get(hash).length }]);
      return json(response, { urls: Object.fromEntries(urls) });
    }
    if (refusing) return void response.writeHead(503).end();
    for (const [endpoint, versions] of Object.entries(body.stats ?? {}))
      counts[endpoint] = { ...counts[endpoint], ...versions };
    for (const told of body.evidence ?? []) {
      const key = `${told.rollout} ${told.epoch} ${told.worker}`;
      const boot = `${key} ${body.bootId}`;
      evidence.set(key, told);
      evidenceByBoot.set(boot, joinSets(evidenceByBoot.get(boot), structuredClone(told)));
    }
    if (body.report) {
      hashes.set(body.bootId, body.hash);
      reports.push({ ...body.report, at: Date.now() });
    }
    json(response, { needReport: body.hash !== hashes.get(body.bootId) });
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = `http://127.0.0.1:${server.address().port}`;

  return {
    address,
    joinKey,
    reports,
    counts,
    /** What each worker told last of each epoch of a rollout: `<rollout> <epoch> <worker>`. */
    evidence,
    /** The same of every boot of every router, sets of buckets joined. */
    evidenceByBoot,
    /** From now on reports are answered with 503, or taken again. */
    refuseReports(refuse) {
      refusing = refuse;
    },
    get lineage() {
      return lineage;
    },
    get revision() {
      return revision;
    },
    get enrolments() {
      return enrolments;
    },
    /** The next table; sections left out are empty. Returns its revision. */
    publish({ endpoints = {}, servers = {}, keys = {}, confirmed = true }) {
      revision += 1;
      const head = { lineage, revision, schema: 1, confirmed, publishedAt: new Date().toISOString(), routers: 1 };
      tables.set(revision, structuredClone({ ...head, endpoints, servers, keys }));
      for (const entry of [...waiting]) entry.wake();
      return revision;
    },
    /** As after a restore of the database: another lineage, counting from the start. */
    restore() {
      lineage = randomUUID();
      revision = 0;
      tables.clear();
    },
    /** The token given so far is no longer known. */
    forgetTokens() {
      token = randomUUID();
    },
    /** A file of a version; returns its entry for a route target. */
    addBlob(path, bytes) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      blobs.set(sha256, bytes);
      return { path, sha256, size: bytes.length };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A route target with every field filled. */
export const target = (fields) => ({
  version: 1,
  maxBatchSize: 0,
  inputs: [],
  outputs: [],
  processing: { builtin: 'passthrough', options: {} },
  files: [],
  ...fields,
});

/** A route over targets: the first takes all unless `arms` says otherwise. */
export const route = (targets, fields = {}) => ({
  arms: [{ deployment: targets[0].deployment, share: 1 }],
  targets,
  access: 'public',
  timeoutMs: 10_000,
  maxBodyBytes: 67_108_864,
  idempotent: true,
  ...fields,
});
