import { AppError, type Endpoint, type Framework, type Version } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { formatBytes } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import { type Shown, tableText } from '../output.ts';
import { parseModel, parsePairs } from '../reference.ts';
import type { FoundFile } from '../upload/manifest.source.ts';
import {
  type ImportedModel,
  type ImportedVersion,
  type ImportNaming,
  type ImportPlan,
  planTritonImport,
} from '../upload/triton.plan.ts';
import { importFault, type ScannedFolder, type ScannedRepository, scanRepository } from '../upload/triton.source.ts';
import { type Uploaded, uploadVersion } from '../upload/version.apply.ts';
import type { Options } from '../verb.ts';
import { versionPath } from '../version.source.ts';
import { carriedProcessing, wishOf } from './model-upload.ts';

interface Row {
  model: string;
  version: number | null;
  from: string;
  files: number;
  sizeBytes: number;
  outcome: Uploaded['outcome'] | 'would import';
  state: string;
}

interface Made {
  endpoint: string;
  maxVersions: number;
  outcome: 'created' | 'exists' | 'would create';
}

/** `perch model import [project/name] DIR --from triton`: every version folder becomes a version, in order. */
export async function importTriton(
  invocation: Invocation,
  [first, second]: readonly (string | undefined)[],
  options: Options,
): Promise<Shown> {
  const place = second ?? first;
  if (!place) throw new AppError('invalid', 'which folder? perch model import --from triton DIR --project NAME');
  const client = await invocation.admin();
  const repository = await scanRepository(client, place);
  const naming = namingOf(second === undefined ? undefined : first, options, repository);
  const plan = planTritonImport(repository.folders, naming);
  if (plan.faults.length > 0) throw importFault(plan.faults);
  const notes = [...repository.notes, ...plan.notes];
  for (const note of notes) invocation.note(`note: ${note}`);
  const dry = options['dryRun'] === true;
  const byFolder = new Map(repository.folders.map((folder) => [folder.name, folder]));
  const rows: Row[] = [];
  for (const model of plan.models)
    for (const version of model.versions) {
      const files = filesOf(version, byFolder);
      const row = dry
        ? planned(model, version, files, naming)
        : await importVersion(invocation, client, { model, version, files, naming }, options);
      rows.push(row);
    }
  const endpoints = options['endpoint'] ? await makeEndpoints(client, plan, naming, options) : [];
  return shown(rows, { ...plan, ...naming }, endpoints, notes);
}

function namingOf(reference: string | undefined, options: Options, { folders }: ScannedRepository): ImportNaming {
  const given = (options['name'] as string[] | undefined) ?? [];
  const names = parsePairs(given.filter((name) => name.includes('=')), '--name'); // biome-ignore format: one row
  const plain = given.filter((name) => !name.includes('='));
  const unknown = Object.keys(names).find((name) => !folders.some((folder) => folder.name === name));
  if (unknown) throw new AppError('invalid', `--name ${unknown}=…: the repository has no folder ${unknown}`);
  const project = reference ? parseModel(reference).project : options['project'];
  if (!project) throw new AppError('invalid', 'into which project? Give --project NAME (or project/name before DIR)');
  const single = reference ? parseModel(reference).name : plain[0];
  if (single === undefined) return { project, names };
  const served = planTritonImport(folders, { project, names: {} }).models;
  if (served.length > 1)
    throw new AppError(
      'invalid',
      `one name is given (${single}) and the folder holds ${served.length} models (${served.map(({ folder }) => folder).join(', ')}); use --project and --name folder=name`,
    );
  return { project, names: served[0] ? { [served[0].folder]: single } : {} };
}

function filesOf(version: ImportedVersion, byFolder: ReadonlyMap<string, ScannedFolder>): FoundFile[] {
  return version.files.map(({ folder, from, to }) => {
    const found = byFolder.get(folder)!.found.find(({ path }) => path === from)!;
    return { ...found, path: to };
  });
}

const totalBytes = (files: readonly FoundFile[]) => files.reduce((sum, { size }) => sum + size, 0);

const planned = (
  model: ImportedModel,
  version: ImportedVersion,
  files: readonly FoundFile[],
  { project }: ImportNaming,
): Row => ({
  model: `${project}/${model.name}`,
  version: null,
  from: `${model.folder}/${version.folder}`,
  files: files.length,
  sizeBytes: totalBytes(files),
  outcome: 'would import',
  state: version.served ? 'published' : 'draft',
});

interface OneVersion {
  model: ImportedModel;
  version: ImportedVersion;
  files: FoundFile[];
  naming: ImportNaming;
}

async function importVersion(
  invocation: Invocation,
  client: AdminClient,
  { model, version, files, naming }: OneVersion,
  options: Options,
): Promise<Row> {
  const { name, folder, uses, ensemble } = model;
  const { metadata, ...described } = wishOf(options);
  const kind: { framework?: Framework } = ensemble ? { framework: 'ensemble' } : {};
  const { version: made, outcome } = await uploadVersion(client, {
    model: { project: naming.project, name },
    files,
    always: options['newVersion'] === true,
    anywhere: true,
    progress: invocation.output === 'table',
    uses: Object.keys(uses).length > 0 ? uses : undefined,
    ...(version.served ? await carriedProcessing(client, options) : {}),
    ...kind,
    ...described,
    metadata: { ...metadata, 'triton.version': String(version.folder) },
  });
  const publishes = (options['publish'] || options['endpoint']) && version.served && made.state === 'draft';
  const after = publishes ? await client.call<Version>(`${versionPath(made)}/publish`, { method: 'POST' }) : made;
  return {
    model: `${made.project}/${made.name}`,
    version: made.number,
    from: `${folder}/${version.folder}`,
    files: files.length,
    sizeBytes: totalBytes(files),
    outcome,
    state: after.state,
  };
}

/** Endpoints under the models' names; one that is there is left as it is, and said. */
async function makeEndpoints(
  client: AdminClient,
  { models }: ImportPlan,
  { project }: ImportNaming,
  options: Options,
): Promise<Made[]> {
  const prefix = typeof options['endpoint'] === 'string' ? `${options['endpoint'].replace(/\/+$/, '')}/` : '';
  const made: Made[] = [];
  for (const { name, maxVersions } of models) {
    const endpoint = `${prefix}${name}`;
    const there = await client.find<Endpoint>(`/endpoints/${encodeURIComponent(endpoint)}`);
    if (!there && options['dryRun'] !== true)
      await client.call<Endpoint>('/endpoints', {
        method: 'POST',
        body: { kind: 'Endpoint', name: endpoint, model: { project, name, maxVersions } },
      });
    const outcome = there ? 'exists' : options['dryRun'] === true ? 'would create' : 'created';
    made.push({ endpoint, maxVersions, outcome });
  }
  return made;
}

function shown(
  rows: readonly Row[],
  { models, project }: ImportPlan & ImportNaming,
  endpoints: readonly Made[],
  notes: string[],
): Shown {
  const table = tableText(rows, [
    ['model', (row) => row.model],
    ['version', (row) => row.version],
    ['from', (row) => row.from],
    ['files', (row) => row.files],
    ['size', (row) => formatBytes(row.sizeBytes)],
    ['outcome', (row) => row.outcome],
    ['state', (row) => row.state],
  ]);
  const lines = endpoints.map(({ endpoint, maxVersions, outcome }) =>
    outcome === 'exists'
      ? `Endpoint ${endpoint} exists and is left as it is; Triton would serve maxVersions ${maxVersions}.`
      : `Endpoint ${endpoint} ${outcome === 'created' ? 'is added' : 'would be added'} with maxVersions ${maxVersions}.`,
  );
  const hints = models
    .filter(() => endpoints.length === 0)
    .map(
      ({ name, maxVersions }) =>
        `Next: perch endpoint add ${name} --model ${project}/${name} --max-versions ${maxVersions}`,
    );
  const suggested = models.map(({ name, maxVersions }) => ({ name, maxVersions }));
  return {
    value: { versions: rows, endpoints, suggested, notes },
    text: () => [table, ...lines, ...hints].join('\n'),
  };
}
