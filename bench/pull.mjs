/**
 * `node bench/pull.mjs`: what an agent gets from an artifact store, SHA-256 and all, beside curl writing the same files
 * from the same store in the same run, in turns; medians.
 *
 *   --rounds N   (5)      --mib N   of each case (256)      --json   all figures as the last line
 */
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { parseArgs, promisify } from 'node:util';
import { FolderStore, S3Store } from '@perch/registry';
import { BlobCache, BlobClient, UrlBook } from '@perch/sync';
import { Agent } from 'undici';
import { findS3, startS3 } from '../scripts/real-s3.mjs';

const budget = 0.8;
const mib = 1024 ** 2;
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    mib: { type: 'string', default: '256' },
    json: { type: 'boolean', default: false },
  },
});
const run = promisify(execFile);
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** `count` files that make up `totalMib` together. */
async function fill(store, count, totalMib) {
  const files = [];
  for (let n = 0; n < count; n += 1) {
    const block = randomBytes(mib);
    const blocks = Math.max(1, Math.floor(totalMib / count));
    const hash = createHash('sha256');
    for (let i = 0; i < blocks; i += 1) hash.update(block);
    const bytes = { sha256: hash.digest('hex'), sizeBytes: blocks * mib };
    await store.put(`blobs/${bytes.sha256}/bench`, Readable.from(Array(blocks).fill(block)), bytes);
    files.push({ sha256: bytes.sha256, size: bytes.sizeBytes });
  }
  return files;
}

async function folderStore(folder) {
  const root = join(folder, 'store');
  const store = await FolderStore.open({ root, publicUrl: () => '', signingKey: async () => '' });
  const child = spawn(process.execPath, [resolve(import.meta.dirname, 'folder-store.mjs'), root], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const sign = async (key) => {
    child.stdin.write(`${key}\n`);
    return (await lines.next()).value;
  };
  return { name: 'folder store', store, sign, close: async () => void child.kill() };
}

async function s3Store(folder) {
  const server = await startS3({ folder });
  const { endpoint, bucket, accessKeyId, secretAccessKey } = server;
  const store = new S3Store({ bucket, prefix: '', endpoint, region: 'us-east-1', accessKeyId, secretAccessKey });
  const sign = (key) => store.signGet(key, new Date(Date.now() + 3_600_000));
  return { name: 'versitygw', store, sign, close: () => server.stop() };
}

async function timed(work) {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1_000;
}

async function withCurl(urls, folder) {
  await mkdir(folder);
  const targets = urls.flatMap((url, n) => ['-o', join(folder, String(n)), url]);
  const seconds = await timed(() => run('curl', ['-sf', ...(urls.length > 1 ? ['-Z'] : []), ...targets]));
  await rm(folder, { recursive: true });
  return seconds;
}

async function withAgent(files, urlOf, folder) {
  const dispatcher = new Agent({ connections: 16 });
  const source = { urls: async (hashes) => Object.fromEntries(hashes.map((hash) => [hash, { url: urlOf.get(hash), size: 0 }])) };
  const cache = new BlobCache(new BlobClient(new UrlBook(source), dispatcher), { folder });
  await cache.open();
  const seconds = await timed(() => cache.pullAll(files, new AbortController().signal));
  await cache.flush();
  await dispatcher.destroy();
  await rm(folder, { recursive: true });
  return seconds;
}

async function measure(place, count, folder) {
  const files = await fill(place.store, count, Number(options.mib));
  const urlOf = new Map();
  for (const { sha256 } of files) urlOf.set(sha256, await place.sign(`blobs/${sha256}/bench`));
  const megabytes = files.reduce((sum, { size }) => sum + size, 0) / 1e6;
  const rates = { curl: [], agent: [], ratio: [] };
  for (let round = 0; round <= Number(options.rounds); round += 1) {
    const curl = megabytes / (await withCurl([...urlOf.values()], join(folder, 'curl')));
    const agent = megabytes / (await withAgent(files, urlOf, join(folder, 'cache')));
    if (round === 0) continue; // everything is in the page cache from here on, for both
    rates.curl.push(curl);
    rates.agent.push(agent);
    rates.ratio.push(agent / curl);
  }
  const what = count === 1 ? `1 file of ${options.mib} MiB` : `${count} files, ${options.mib} MiB together`;
  return { name: `pull of ${what}, ${place.name}`, curl: median(rates.curl), agent: median(rates.agent), ratio: median(rates.ratio) };
}

const folder = await mkdtemp(join(tmpdir(), 'perch-pull-'));
const figures = [];
try {
  for (const open of [s3Store, folderStore]) {
    if (open === s3Store && !findS3().found) {
      console.log(`skipped: versitygw: ${findS3().reason}`);
      continue;
    }
    const place = await open(folder);
    try {
      for (const count of [1, 8]) figures.push(await measure(place, count, folder));
    } finally {
      await place.close();
    }
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
for (const { name, curl, agent, ratio } of figures)
  console.log(
    `${name.padEnd(52)} curl ${curl.toFixed(0)} MB/s, agent ${agent.toFixed(0)} MB/s: ${ratio.toFixed(2)} of curl, budget ${budget}: ${ratio >= budget ? 'met' : 'MISSED'}`,
  );
if (options.json) console.log(JSON.stringify({ figures }));
process.exit(0);
