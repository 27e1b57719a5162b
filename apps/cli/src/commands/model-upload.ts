import { basename } from 'node:path';
import {
  AppError,
  type Framework,
  type ProcessingModuleRecord,
  type ProcessingSpec,
  type Version,
} from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { clearmlFramework, plainName, plainTag } from '../clearml/name.ts';
import { formatBytes } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import { type Shown, said } from '../output.ts';
import { type ModelReference, parseModel, versionText } from '../reference.ts';
import { processingFlags } from '../spec/processing-flags.plan.ts';
import { findFiles } from '../upload/manifest.source.ts';
import { usesOf } from '../upload/uses.plan.ts';
import { type Uploaded, uploadVersion, versionsPath } from '../upload/version.apply.ts';
import type { Options, Run } from '../verb.ts';
import { versionPath } from '../version.source.ts';
import { waitMs } from '../wait.ts';
import { describingOf } from './model-describe.ts';
import { waitServed } from './served.ts';

export const run: Run = async (invocation, [reference, place], options) => {
  const model = modelOf(invocation, reference, options);
  const path = place ?? options['path'];
  if (!path === !options['url'])
    throw new AppError('invalid', 'wants either a path or --url: perch model upload project/name ./folder');
  if (options['destination'])
    invocation.note('note: --destination is not used; bytes go to the artifact store of the control plane');
  const template = path ? await templateOf(path, options) : undefined;
  if (template) {
    const { importTemplate } = await import('./model-import-template.ts');
    return importTemplate(invocation, { reference: `${model.project}/${model.name}`, ...template }, options);
  }
  const client = await invocation.admin();
  const uploaded = options['url']
    ? await fromUrl(client, model, options)
    : await fromDisk(invocation, client, model, path as string, options);
  return finish(invocation, client, uploaded, options);
};

function modelOf(invocation: Invocation, reference: string | undefined, options: Options): ModelReference {
  if (reference && !options['name']) return parseModel(reference);
  if (!options['name'] || !options['project'])
    throw new AppError('invalid', 'which model? perch model upload project/name ./folder (or --project and --name)');
  return {
    project: plainName(options['project'], 'project', invocation),
    name: plainName(options['name'], 'model', invocation),
  };
}

/** `--framework xgboost` of a model file, as ClearML's examples upload them: it is wrapped for Triton. */
async function templateOf(path: string, options: Options) {
  const engine = { 'scikit-learn': 'sklearn', xgboost: 'xgboost', lightgbm: 'lightgbm' }[
    String(options['framework']).toLowerCase()
  ];
  if (!engine) return undefined;
  const { isServable, isTemplateEngine } = await import('../upload/python-template.plan.ts');
  if (!isTemplateEngine(engine) || !isServable(engine, path, options['allowPickle'] === true)) return undefined;
  const { files } = await findFiles(path);
  return files.length === 1 ? { engine, file: { ...files[0]!, path: basename(files[0]!.path) } } : undefined;
}

const tagsOf = (options: Options): string[] => [...(options['tag'] ?? []), ...(options['tags'] ?? []).map(plainTag)];

/** Tags, framework, description, metadata and lineage as the flags give them. */
export function wishOf(options: Options): { framework?: Framework; tags?: string[] } & ReturnType<typeof describingOf> {
  const tags = tagsOf(options);
  const describing = describingOf(options);
  if (options['framework'] === undefined) return { ...(tags.length > 0 ? { tags } : {}), ...describing };
  const { framework, was } = clearmlFramework(options['framework']);
  const metadata = was ? { ...describing.metadata, framework: was } : describing.metadata;
  return { framework, ...(tags.length > 0 ? { tags } : {}), ...describing, ...(metadata ? { metadata } : {}) };
}

/** What the version is to carry, its module by number, so that an upload that was cut off is known again. */
export async function carriedProcessing(
  client: AdminClient,
  options: Options,
): Promise<{ processing?: ProcessingSpec }> {
  const said = processingFlags(options, undefined);
  if (!said) return {};
  if (said.module === undefined || said.module.includes('@')) return { processing: said };
  const [newest] = await client.list<ProcessingModuleRecord>(`/modules/${encodeURIComponent(said.module)}`);
  return { processing: { ...said, module: `${said.module}@${newest!.number}` } };
}

async function fromUrl(client: AdminClient, model: ModelReference, options: Options): Promise<Uploaded> {
  if (!/^(https?|s3):\/\//.test(options['url']))
    throw new AppError(
      'invalid',
      `--url: wants http(s)://… or s3://…, got "${options['url']}"; download it and give its path`,
    );
  const uses = usesOf(options['uses']);
  const processing = await carriedProcessing(client, options);
  const named = { url: options['url'], path: options['as'], sha256: options['sha256'] };
  const body = { ...named, uses, ...processing, ...wishOf(options) };
  const version = await client.call<Version>(`${versionsPath(model)}/from-url`, {
    method: 'POST',
    body,
    timeoutMs: 60 * 60_000,
  });
  return { version, outcome: 'fetched', sentBytes: 0 };
}

async function fromDisk(
  invocation: Invocation,
  client: AdminClient,
  model: ModelReference,
  path: string,
  options: Options,
): Promise<Uploaded> {
  const { files, skipped } = await findFiles(path, options['as']);
  if (skipped.length > 0) invocation.note(`note: left out: ${[...new Set(skipped)].join(', ')}`);
  const progress = invocation.output === 'table';
  const uses = usesOf(options['uses']);
  const always = options['newVersion'] === true;
  const processing = await carriedProcessing(client, options);
  return uploadVersion(client, { model, files, always, progress, uses, ...processing, ...wishOf(options) });
}

/** Tags and facts of this call where the version is not new, then publishing and waiting, then the sentence. */
export async function finish(
  invocation: Invocation,
  client: AdminClient,
  { version: made, outcome, sentBytes }: Uploaded,
  options: Options,
): Promise<Shown> {
  let version = made;
  const { tags = [], framework: _framework, ...describing } = wishOf(options);
  const missing = tags.filter((tag) => !version.tags.includes(tag));
  if (missing.length > 0)
    version = await client.call(`${versionPath(version)}/tags`, { method: 'POST', body: { add: missing } });
  if (outcome !== 'created' && outcome !== 'fetched' && Object.keys(describing).length > 0)
    version = await client.call(versionPath(version), { method: 'PATCH', body: describing });
  if (options['publish'] && version.state !== 'published')
    version = await client.call<Version>(`${versionPath(version)}/publish`, { method: 'POST' });
  const limitMs = waitMs(options['wait']);
  const served = limitMs === undefined ? '' : await waitServed(client, version, limitMs);
  if (version.state === 'draft') invocation.hint(`Next: perch model publish ${versionText(version)}`);
  return said({ ...version, outcome, sentBytes }, sentence(version, outcome, sentBytes) + served);
}

function sentence(version: Version, outcome: Uploaded['outcome'], sentBytes: number): string {
  const how = {
    created: `uploaded (${formatBytes(version.sizeBytes)}, ${formatBytes(sentBytes)} of them sent)`,
    resumed: `resumed and complete (${formatBytes(sentBytes)} were still to send)`,
    fetched: `registered (${formatBytes(version.sizeBytes)}, fetched by the control plane)`,
    'already there': 'already there with exactly these bytes',
  }[outcome];
  return `${versionText(version)} is ${how}; it is ${version.state}. Model ID=${version.id}`;
}
