/**
 * Transpiles projects with swc, every file below src/ into dist/ (types are checked by `npm run check`, not here), and
 * writes declarations of the entries that a project's package.json gives types of in dist/.
 * Without an argument: every project, only files newer than their build; with a folder: that project.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';
import { writeDeclarations } from './declarations.mjs';
import { swcSettings } from './swc.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

async function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((e) => e.isFile()).map((e) => join(e.parentPath, e.name));
}

const isSource = (file) => file.endsWith('.ts') && !file.endsWith('.spec.ts') && !file.endsWith('.d.ts');

async function transpile(file, target) {
  const { code, map } = await transform(await readFile(file, 'utf8'), {
    filename: file,
    sourceFileName: relative(dirname(target), file),
    sourceMaps: true,
    swcrc: false,
    ...swcSettings,
  });
  const runnable = code.replace(/((?:from|import)\s*\(?\s*['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2');
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, runnable);
  await writeFile(`${target}.map`, map);
}

async function buildProject(folder) {
  const src = existsSync(join(folder, 'src')) ? join(folder, 'src') : folder;
  const dist = join(folder, 'dist');
  const sources = (await filesBelow(src)).filter((file) => isSource(file) && !file.startsWith(dist));
  const wanted = new Set();
  let built = 0;
  for (const file of sources) {
    const target = join(dist, relative(src, file).replace(/\.ts$/, '.js'));
    wanted.add(target).add(`${target}.map`);
    const age = existsSync(target) ? (await stat(target)).mtimeMs : 0;
    if (age > (await stat(file)).mtimeMs) continue;
    await transpile(file, target);
    built += 1;
  }
  const manifest = join(folder, 'package.json');
  const { exports = {} } = existsSync(manifest) ? JSON.parse(await readFile(manifest, 'utf8')) : {};
  for (const { types } of Object.values(exports))
    if (types?.startsWith('./dist/'))
      await writeDeclarations(join(src, relative('dist', types).replace(/\.d\.ts$/, '.ts')), src, dist);
  for (const file of await filesBelow(dist)) if (!wanted.has(file) && /\.js(\.map)?$/.test(file)) await rm(file);
  return built;
}

async function allProjects() {
  const folders = [];
  for (const group of ['libs', 'apps']) {
    for (const name of await readdir(join(root, group)))
      if (existsSync(join(root, group, name, 'package.json'))) folders.push(join(root, group, name));
  }
  return [...folders, join(root, 'migrations')];
}

const named = process.argv.slice(2).map((folder) => resolve(folder));
let total = 0;
for (const folder of named.length ? named : await allProjects()) total += await buildProject(folder);
if (process.env.PERCH_BUILD_QUIET !== '1') console.error(`build: ${total} files transpiled`);
