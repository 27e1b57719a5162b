/**
 * `npm run demo`: the main job from end to end on this machine. Installs, builds, starts everything on free ports with a
 * fresh data folder, uploads a real text-embedding model, serves it, publishes a second version and sees it served by
 * itself; then stops. Starts with Node's built-ins only, so that one command works on a fresh clone.
 *
 *   --json            the last line is {"steps": [{"name", "ms"}], "publishToServedMs", "similarity"}
 *   --keep            leaves it running
 *   --triton          on the real Triton (node scripts/real-triton.mjs install)
 *   --s3 URL          on an S3 store: s3://bucket/prefix with PERCH_S3_… set, or http://key:secret@host:port/bucket/prefix
 *   --postgres URL    on an own database
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureBuilt, ensureInstalled, root } from './install.mjs';
import { Stack } from './stack.mjs';

const cli = join(root, 'apps/cli/dist/main.js');
const sentences = [
  'A man is playing the guitar on a stage.',
  'Somebody performs music on a guitar in front of people.',
  'The stock market fell sharply on Monday.',
];
const servedTimeoutMs = 60_000;

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean' },
    keep: { type: 'boolean' },
    triton: { type: 'boolean' },
    s3: { type: 'string' },
    postgres: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
if (flags.help) {
  const text = await readFile(new URL(import.meta.url), 'utf8');
  console.log(text.slice(text.indexOf('`npm'), text.indexOf(' */')).replace(/^ \* ?/gm, ''));
  process.exit(0);
}

const steps = [];
/** With --json stdout holds the result alone. */
const say = (line) => (flags.json ? console.error(line) : console.log(line));

async function step(name, work) {
  const begun = performance.now();
  try {
    const result = await work();
    const ms = Math.round(performance.now() - begun);
    steps.push({ name, ms });
    say(`  ok  ${name.padEnd(52)} ${(ms / 1_000).toFixed(2).padStart(7)} s`);
    return result;
  } catch (error) {
    say(`FAIL  ${name}`);
    throw error;
  }
}

const pause = (ms) => new Promise((next) => setTimeout(next, ms));

const cosine = (a, b) => {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i += 1) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return dot / Math.sqrt(aa * bb);
};

async function embed(stack, path) {
  const answer = await stack.serve(path, { text: sentences });
  if (answer.status !== 200) throw new Error(`/serve/${path} answered ${answer.status}: ${answer.text.slice(0, 500)}`);
  const { embeddings } = JSON.parse(answer.text);
  if (embeddings?.length !== 3 || embeddings.some((vector) => vector.length !== 384))
    throw new Error(`/serve/${path} did not answer three vectors of 384 numbers: ${answer.text.slice(0, 200)}`);
  return { vectors: embeddings, version: answer.version };
}

function compare([a, b, c]) {
  const similarity = { paraphrases: cosine(a, b), unrelated: Math.max(cosine(a, c), cosine(b, c)) };
  if (!(similarity.paraphrases > similarity.unrelated + 0.2))
    throw new Error(
      `paraphrases (${similarity.paraphrases}) are not nearer than the unrelated sentence (${similarity.unrelated})`,
    );
  return Object.fromEntries(Object.entries(similarity).map(([name, value]) => [name, Number(value.toFixed(4))]));
}

/** Milliseconds from now until the router answers with `version`; every reply on the way must be a good one. */
async function untilServed(stack, endpoint, version, begun) {
  while (performance.now() - begun < servedTimeoutMs) {
    const answer = await stack.serve(endpoint, { text: sentences[0] });
    if (answer.status !== 200)
      throw new Error(`while the version changed, /serve/${endpoint} answered ${answer.status}: ${answer.text}`);
    if (answer.version === version) return Math.round(performance.now() - begun);
    await pause(20);
  }
  throw new Error(`version ${version} is not served after ${servedTimeoutMs / 1_000} s`);
}

async function show(stack, endpoint) {
  const text = await new Promise((done, fail) => {
    execFile(process.execPath, [cli, 'endpoint', 'show', endpoint], { env: stack.env }, (error, out, words) =>
      error ? fail(new Error(words)) : done(out),
    );
  });
  say(text.trimEnd().replace(/^/gm, '      '));
}

async function run(stack) {
  const outside = flags.s3 || flags.postgres || process.env.PERCH_STORE_URL || process.env.PERCH_DATABASE_URL;
  const suffix = outside ? `-${Date.now().toString(36)}` : ''; // an own store may hold earlier demos
  const model = `nlp/minilm${suffix}`;
  const endpoint = `text/minilm${suffix}`;

  const { minilmFolder } = await import('./models/minilm.mjs');
  const folders = await step('build MiniLM twice, from real weights', async () => [
    await minilmFolder(1),
    await minilmFolder(2),
  ]);
  await step(`start everything${flags.triton ? ' on the real Triton' : ''}`, () => stack.start());
  const first = await step('upload a first version', () => stack.perch('model', 'import', model, folders[0]));
  await step('publish it', () => stack.perch('model', 'publish', `${model}@${first.number}`));
  await step('add an endpoint that follows published versions', () =>
    stack.perch(
      'endpoint',
      'add',
      endpoint,
      '--model',
      model,
      '--processing',
      'text-embedding',
      '--max-versions',
      '2',
      '--wait=120s',
    ),
  );
  const before = await step('embed three sentences through /serve', () => embed(stack, endpoint));
  const similarity = compare(before.vectors);
  say(`      paraphrases ${similarity.paraphrases}, unrelated ${similarity.unrelated}, version ${before.version}`);
  const second = await step('upload a second version of other bytes', () =>
    stack.perch('model', 'import', model, folders[1]),
  );
  if (second.manifestDigest === first.manifestDigest)
    throw new Error('the second version holds the same bytes as the first');
  const publishToServedMs = await step('publish it, and see it served by itself', async () => {
    const begun = performance.now();
    await stack.perch('model', 'publish', `${model}@${second.number}`);
    return untilServed(stack, endpoint, second.number, begun);
  });
  compare((await embed(stack, endpoint)).vectors);
  await step('show the endpoint', () => show(stack, endpoint));
  await step('ask the first version by its number', async () => {
    const pinned = await embed(stack, `${endpoint}/${first.number}`);
    if (pinned.version !== first.number)
      throw new Error(`asked for version ${first.number}, version ${pinned.version} answered`);
    const drift = Math.max(...pinned.vectors.map((vector, at) => 1 - cosine(vector, before.vectors[at])));
    if (drift > 1e-4) throw new Error(`version ${first.number} answers something else than before (${drift})`);
  });
  return { publishToServedMs, similarity };
}

async function main() {
  say('Perch, from nothing to a served model:');
  await step('install', async () => ensureInstalled());
  await step('build', async () => ensureBuilt());
  const folder = await mkdtemp(join(tmpdir(), 'perch-demo-'));
  const stack = new Stack(folder, flags);
  const interrupted = async () => {
    await stack.stop().catch(() => undefined);
    process.exit(130);
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  let result;
  try {
    result = await run(stack);
    if (!flags.keep) await step('stop', () => stack.stop());
  } catch (error) {
    await stack.stop().catch((second) => say(second.message));
    say(`Its folder is kept: ${folder}`);
    throw error;
  }
  if (flags.keep) {
    stack.child.unref();
    say(
      `\nIt goes on running (process ${stack.running.pid}). Talk to it:\n  PERCH_CONFIG_DIR=${stack.running.configDir} npm run perch -- endpoint list\nStop it: kill ${stack.running.pid}`,
    );
  } else await stack.clear();
  say(`\nThe second version was served ${(result.publishToServedMs / 1_000).toFixed(2)} s after it was published.`);
  if (flags.json) console.log(JSON.stringify({ steps, ...result }));
}

await main().then(
  () => process.exit(0),
  (error) => {
    console.error(`demo failed: ${error.message}`);
    process.exit(1);
  },
);
