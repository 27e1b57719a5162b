/**
 * `npm run example -- NAME …`: plays one example of examples/ from end to end on this machine: installs, builds, starts
 * everything with a fresh data folder, does what the example shows through the CLI and over HTTP, holds the answers
 * against the known ones, stops. Exits 1 when an answer is not the known one. Starts with Node's built-ins only.
 *
 *   --list            what there is
 *   --all             all of them, one after the other on one installation
 *   --triton          on the real Triton (node scripts/real-triton.mjs install); with --all those that are made for it
 *   --keep            leaves it running
 */
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ExampleRun } from './example-run.mjs';
import { ensureBuilt, ensureInstalled, root } from './install.mjs';
import { Stack } from './stack.mjs';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean' },
    all: { type: 'boolean' },
    triton: { type: 'boolean' },
    keep: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
});

/** Every folder with an example.mjs: its name, its module (title, triton, run). */
async function examples() {
  const folder = join(root, 'examples');
  const found = [];
  for (const entry of (await readdir(folder, { withFileTypes: true })).filter((one) => one.isDirectory())) {
    const file = join(folder, entry.name, 'example.mjs');
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const title = /export const title = '([^']*)'/.exec(text)?.[1] ?? '';
    found.push({ name: entry.name, title, triton: /export const triton = true/.test(text), file });
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const list = (all) =>
  all.map(({ name, title, triton }) => `  ${name.padEnd(20)} ${title}${triton ? '' : ' (embedded engine)'}`).join('\n');

async function chosen() {
  const all = await examples();
  if (flags.all) return flags.triton ? all.filter(({ triton }) => triton) : all;
  const picked = positionals.map((name) => all.find((one) => one.name === name));
  const wrong = positionals[picked.indexOf(undefined)];
  if (picked.length === 0 || wrong !== undefined)
    throw new Error(
      `${wrong === undefined ? 'which example?' : `there is no example ${wrong}`} There are:\n${list(all)}`,
    );
  const refused = flags.triton && picked.find(({ triton }) => !triton);
  if (refused) throw new Error(`example ${refused.name} is made for the embedded engine: leave --triton out`);
  return picked;
}

async function play(stack, picked) {
  for (const { name, title, file } of picked) {
    console.log(`\n${name}: ${title}`);
    const module = await import(pathToFileURL(file).href);
    const run = new ExampleRun(stack, { name, folder: join(root, 'examples', name), triton: flags.triton === true });
    await module.run(run);
    console.log(`  ${run.checks} answers are the known ones.`);
  }
}

async function main() {
  if (flags.help) {
    const text = await readFile(new URL(import.meta.url), 'utf8');
    return console.log(text.slice(text.indexOf('`npm'), text.indexOf(' */')).replace(/^ \* ?/gm, ''));
  }
  if (flags.list) return console.log(list(await examples()));
  const picked = await chosen();
  ensureInstalled();
  ensureBuilt();
  const stack = new Stack(await mkdtemp(join(tmpdir(), 'perch-example-')), flags);
  const interrupted = async () => {
    await stack.stop().catch(() => undefined);
    process.exit(130);
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    await stack.start();
    await play(stack, picked);
    if (flags.keep) {
      stack.child.unref();
      return console.log(
        `\nIt goes on running (process ${stack.running.pid}): PERCH_CONFIG_DIR=${stack.running.configDir}`,
      );
    }
    await stack.stop();
  } catch (error) {
    await stack.stop().catch((second) => console.error(second.message));
    console.error(`Its folder is kept: ${stack.folder}`);
    throw error;
  }
  await stack.clear();
}

await main().then(
  () => process.exit(0),
  (error) => {
    console.error(`example failed: ${error.message}`);
    process.exit(1);
  },
);
