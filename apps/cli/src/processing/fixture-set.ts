import { readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { AppError, bundlePath, type Isolation, type ModuleFixture } from '@perch/contracts';
import type { FileSource } from '@perch/processing';
import type { LoadedProcessing, ModuleHost } from '@perch/processing/host';
import { isFixture, parseFixture, recordingOf } from './fixture.plan.ts';
import { fixtureBody } from './fixture-body.source.ts';
import { type FixtureVerdict, runFixture } from './fixture-run.ts';
import type { ModelSource } from './model.source.ts';
import type { PreparedModule } from './prepared-module.ts';
import { noModel, parseRecording, recordedModel, recordingModel } from './recording.plan.ts';
import { taskFaults } from './task-check.plan.ts';

export interface FixtureSettings {
  /** Who answers for the model: an endpoint's, what is recorded beside each fixture, or one recording for all. */
  model: ModelSource | 'recorded' | { recording: string };
  /** Fixtures without a recording, of modules that ask a model, are left out. */
  skipUnrecorded?: boolean;
  /** Write what the model answers beside each fixture. */
  record?: boolean;
  /** This fixture alone, in place of the module's own. */
  only?: string;
  options?: Record<string, unknown>;
  isolation?: Isolation;
  endpoint?: string;
}

interface Named {
  name: string;
  file: string;
  fixture: ModuleFixture & { nothingWanted?: boolean };
}

/** Runs the fixtures of a module one after the other, as a router would run requests. */
export async function runFixtures(prepared: PreparedModule, settings: FixtureSettings): Promise<FixtureVerdict[]> {
  const all = settings.only === undefined ? await ownFixtures(prepared) : [await readNamed(settings.only)];
  const runs: (Named & { model: ModelSource })[] = [];
  for (const named of all) {
    const model = await modelFor(named, settings, prepared);
    if (model) runs.push({ ...named, model });
  }
  if (runs.length === 0) return [];
  const { ModuleHost: Host, isShownHeader } = await import('@perch/processing/host');
  const host = new Host(() => undefined);
  try {
    const verdicts: FixtureVerdict[] = [];
    for (const one of runs)
      verdicts.push(await runOne(host, prepared, settings, { ...one, fixture: withShown(one.fixture, isShownHeader) }));
    return verdicts;
  } finally {
    host.close();
  }
}

/** Modules see a few headers only, here as in a router. */
function withShown<T extends ModuleFixture>(fixture: T, isShown: (name: string) => boolean): T {
  const headers = Object.entries(fixture.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const);
  return { ...fixture, headers: Object.fromEntries(headers.filter(([name]) => isShown(name))) };
}

async function runOne(
  host: ModuleHost,
  prepared: PreparedModule,
  { record, options = {}, isolation = 'worker', endpoint = 'local' }: FixtureSettings,
  { name, file, fixture, model: given }: Named & { model: ModelSource },
): Promise<FixtureVerdict> {
  const { model, recording } = recordingModel(given);
  const { facts, digest, manifest } = prepared;
  const module = { name: 'local', number: 1, digest, facts, files: manifest };
  const files = filesOf(prepared);
  const { signature, maxBatchSize } = model;
  let loaded: LoadedProcessing | undefined;
  try {
    loaded = await host.load({ module, isolation, options, files, signature, maxBatchSize });
    const request = await fixtureBody(fixture, file);
    const verdict = await runFixture({ name, fixture, request, loaded, model, endpoint });
    verdict.told.push(
      ...taskFaults(facts.task, { request: fixture.files ? undefined : fixture.body, reply: verdict.reply }),
    );
    if (record && verdict.ok !== false) await writeFile(recordingOf(file), `${JSON.stringify(recording, null, 1)}\n`);
    return verdict;
  } finally {
    await loaded?.unload();
  }
}

async function ownFixtures({ folder }: PreparedModule): Promise<Named[]> {
  const own = folder.fixtures.filter(({ path }) => isFixture(path));
  return Promise.all(
    own.map(async ({ path, file }) => ({
      name: basename(path, '.json'),
      file,
      fixture: parseFixture(await readFile(file, 'utf8'), path),
    })),
  );
}

/** A fixture, or any JSON: then that is the body, and the reply is only shown. */
async function readNamed(file: string): Promise<Named> {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new AppError('not_found', `--fixture ${file}: no such file`);
  });
  const name = basename(file, '.json');
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { name, file, fixture: parseFixture(text, file) };
  }
  const members = typeof json === 'object' && json !== null && !Array.isArray(json) ? json : {};
  if ('wanted' in members || 'error' in members) return { name, file, fixture: parseFixture(text, file) };
  const whole = 'body' in members || 'files' in members ? members : { body: json };
  const fixture = parseFixture(JSON.stringify({ ...whole, wanted: null }), file);
  return { name, file, fixture: { ...fixture, nothingWanted: true } };
}

async function modelFor(
  { file }: Named,
  { model, skipUnrecorded }: FixtureSettings,
  { facts }: PreparedModule,
): Promise<ModelSource | undefined> {
  if (model !== 'recorded' && !('recording' in model)) return model;
  const path = model === 'recorded' ? recordingOf(file) : model.recording;
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text !== undefined) return recordedModel(parseRecording(text, path), path);
  if (model !== 'recorded') throw new AppError('not_found', `--model ${path}: no such file`);
  return skipUnrecorded && !facts.hooks.includes('process') ? undefined : noModel;
}

/** The files of the module on this computer, as `load` will see those of a registered one. */
export function filesOf({ files }: PreparedModule): FileSource {
  const places = new Map(files.map(({ path, file }) => [path, file]));
  return {
    list: () => [...places.keys()].filter((path) => path !== bundlePath),
    async read(path) {
      const file = places.get(path);
      if (file === undefined) throw new AppError('not_found', `the module has no file ${path}`);
      return readFile(file);
    },
  };
}
