import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError, bundlePath, type ManifestFile, type ModuleFacts, moduleDigest } from '@perch/contracts';
import { type HashedFile, hashFiles, manifestOf } from '../upload/manifest.source.ts';
import { bundleModule } from './bundle.ts';
import { readFacts } from './facts.source.ts';
import { faultsError } from './fault.ts';
import { isFixture, parseFixture } from './fixture.plan.ts';
import { findModule, type ModuleFolder, pathIn } from './module-folder.source.ts';
import { installedSdk } from './sdk.source.ts';
import { typeFaults } from './type-check.ts';

/** A module that was found good: what registering it takes. */
export interface PreparedModule {
  folder: ModuleFolder;
  facts: ModuleFacts;
  bundle: Buffer;
  /** All files, the bundle first. */
  files: HashedFile[];
  manifest: ManifestFile[];
  digest: string;
  /** Files of code that went into the bundle. */
  sources: string[];
  notes: string[];
  /** Takes the bundle from the disk again. */
  close(): Promise<void>;
}

/**
 * Type-checks, bundles and loads a module, and reads its fixtures and files. Throws `invalid` that names file, line and
 * column where there is one.
 */
export async function prepareModule(place: string): Promise<PreparedModule> {
  const folder = await findModule(place);
  await checkFixtures(folder);
  const sdk = installedSdk();
  const { bytes, sources } = await bundleModule(folder);
  const faults = await typeFaults(folder.entry, folder.root, sdk);
  if (faults.length > 0) throw faultsError(`${pathIn(folder.root, folder.entry)} has type errors`, faults);
  const { facts, unknown } = await readFacts({ bundle: bytes, sdk });
  const scratch = await mkdtemp(join(tmpdir(), 'perch-module-'));
  const close = () => rm(scratch, { recursive: true, force: true });
  try {
    const file = join(scratch, bundlePath);
    await writeFile(file, bytes);
    const { mtimeMs } = await stat(file);
    const own = { path: bundlePath, file, size: bytes.length, mtimeMs };
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const silent = { add: () => undefined, end: () => undefined };
    const others = await hashFiles([...folder.files, ...folder.fixtures], 4, silent);
    const files = [{ ...own, sha256 }, ...others];
    const manifest = manifestOf(files);
    const notes = unknown.map((key) => `note: the module's member ${key} is nothing that is known; it is left aside`);
    return {
      folder,
      facts,
      bundle: bytes,
      files,
      manifest,
      digest: moduleDigest(facts, manifest),
      sources,
      notes,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function checkFixtures({ fixtures }: ModuleFolder): Promise<void> {
  const there = new Set(fixtures.map(({ path }) => path));
  for (const { path, file } of fixtures.filter((one) => isFixture(one.path))) {
    const { files } = parseFixture(await readFile(file, 'utf8'), path);
    for (const name of Object.values(files ?? {}))
      if (!there.has(`fixtures/${name}`))
        throw new AppError('not_found', `${path}: there is no file fixtures/${name} beside it`);
  }
}
