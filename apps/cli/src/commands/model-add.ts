import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  AppError,
  type ApplyResult,
  type Endpoint,
  type EndpointSpecInput,
  type Model,
  type Version,
} from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import {
  type ClearmlFlags,
  checkEngine,
  endpointNameOf,
  engineOf,
  modelNames,
  planAdd,
  planAutoUpdate,
  tagRule,
} from '../clearml/endpoint.plan.ts';
import { preprocessRefusal } from '../clearml/preprocess.plan.ts';
import type { Invocation } from '../invocation.ts';
import { type Shown, said } from '../output.ts';
import { parseReference } from '../reference.ts';
import type { Options, Run } from '../verb.ts';
import { findVersion } from '../version.source.ts';
import { waitMs } from '../wait.ts';
import { endpointPath, waitReady } from './ready.ts';
import { splitPath } from './split-change.ts';

/** `--preprocess`: a Python file is refused with the way out; a built-in's name is taken. */
async function processingOf(flags: Options): Promise<EndpointSpecInput['processing'] | undefined> {
  const file = flags['preprocess'] as string | undefined;
  if (file === undefined) return undefined;
  if (/\.ts$|\.m?js$/.test(file))
    throw new AppError(
      'not_available_yet',
      `--preprocess ${file}: registering own modules is not available yet; built-ins: passthrough, text-embedding`,
    );
  if (!/\.py$/.test(file) && !file.includes('/') && !existsSync(file)) return { builtin: file };
  const source = await readFile(file, 'utf8').catch(() => undefined);
  throw new AppError('invalid', preprocessRefusal(file, source, flags['endpoint'] ?? 'NAME'));
}

/** `--aux-config ./config.pbtxt`: its text; undefined when it holds pairs. */
async function auxConfigText(pairs: readonly string[] | undefined): Promise<string | undefined> {
  const [only] = pairs ?? [];
  if (pairs?.length !== 1 || only === undefined) return undefined;
  if (only.includes('=') && !existsSync(only)) return undefined;
  return readFile(only, 'utf8').catch(() => {
    throw new AppError('not_found', `--aux-config ${only}: no such file, and no key=value`);
  });
}

/** The one model of the registry that the flags name; a project may be left out where the name is enough. */
async function findModel(
  client: AdminClient,
  names: { project?: string; name?: string },
): Promise<{ project: string; name: string }> {
  if (names.project && names.name) return { project: names.project, name: names.name };
  if (!names.name) throw new AppError('invalid', 'which model? Give --name and --project (or --model-id)');
  const models = (await client.list<Model>('/models', { name: names.name })).filter(({ name }) => name === names.name);
  if (models.length === 1) return models[0] as Model;
  const found = models.map(({ project, name }) => `${project}/${name}`).join(', ');
  throw new AppError(
    models.length === 0 ? 'not_found' : 'invalid',
    models.length === 0
      ? `there is no model ${names.name}; upload it first`
      : `several models are called ${names.name} (${found}); give --project`,
  );
}

async function byModelId(client: AdminClient, id: string): Promise<Version> {
  if (id.includes('/')) return findVersion(client, parseReference(id));
  for (const { project, name } of await client.list<Model>('/models')) {
    const found = (await client.list<Version>(`/models/${project}/${name}/versions`)).find(
      (version) => version.id === id,
    );
    if (found) return found;
  }
  throw new AppError('not_found', `--model-id ${id}: no version has it; perch model list shows what there is`);
}

/** The newest version that fits name, project, tags and --published, as ClearML's selection has it. */
async function selectVersion(client: AdminClient, flags: ClearmlFlags, invocation: Invocation): Promise<Version> {
  if (flags.modelId) return byModelId(client, flags.modelId);
  const model = await findModel(client, modelNames(flags, invocation));
  const { tags, tagMatch } = tagRule(flags.tags);
  const versions = await client.list<Version>(`/models/${model.project}/${model.name}/versions`);
  const fits = (version: Version) =>
    (version.state === 'published' || (version.state === 'draft' && flags.published !== true)) &&
    (tags.length === 0 ||
      (tagMatch === 'all'
        ? tags.every((tag) => version.tags.includes(tag))
        : tags.some((tag) => version.tags.includes(tag))));
  const newest = versions.filter(fits).sort((a, b) => b.number - a.number)[0];
  if (!newest) throw new AppError('not_found', `no version of ${model.project}/${model.name} fits (tags, --published)`);
  return newest;
}

/** ClearML's `add` also changes an endpoint that is there: that is what apply does. */
async function applySpec(
  invocation: Invocation,
  client: AdminClient,
  spec: EndpointSpecInput,
  options: Options,
): Promise<Shown> {
  const result = await client.call<ApplyResult>('/apply', { method: 'POST', body: spec });
  const limitMs = waitMs(options['wait']);
  if (limitMs !== undefined) await waitReady(client, await client.call<Endpoint>(endpointPath(spec.name)), limitMs);
  const { project, name, version } = spec.model;
  const what = version === undefined ? `follows ${project}/${name}` : `serves ${project}/${name}@${version}`;
  invocation.hint(`Next: perch endpoint show ${spec.name}`);
  return said(result, `Endpoint /${spec.name}/ ${what} (${result.outcome}, generation ${result.generation}).`);
}

export const add: Run = async (invocation, _args, options) => {
  const flags = options as ClearmlFlags;
  checkEngine(flags.engine);
  const processing = await processingOf(options);
  const engine = engineOf(flags, await auxConfigText(flags.auxConfig));
  const client = await invocation.admin();
  const version = await selectVersion(client, flags, invocation);
  const spec = planAdd(flags, version, engine, invocation);
  return applySpec(invocation, client, { ...spec, ...(processing ? { processing } : {}) }, options);
};

export const autoUpdate: Run = async (invocation, _args, options) => {
  const flags = options as ClearmlFlags;
  checkEngine(flags.engine);
  const processing = await processingOf(options);
  const engine = engineOf(flags, await auxConfigText(flags.auxConfig));
  const client = await invocation.admin();
  const model = await findModel(client, modelNames(flags, invocation));
  const spec = planAutoUpdate(flags, model, engine, invocation);
  return applySpec(invocation, client, { ...spec, ...(processing ? { processing } : {}) }, options);
};

/** An endpoint, else a canary of that name: ClearML's `remove` takes both. */
export const remove: Run = async (invocation, _args, options) => {
  const name = endpointNameOf(options['endpoint'], undefined, invocation);
  const client = await invocation.admin();
  const gone = (error: unknown) => {
    if (error instanceof AppError && error.code === 'not_found') return false;
    throw error;
  };
  const paths = [endpointPath(name), splitPath(name)];
  for (const path of paths) {
    const removed = await client.call(path, { method: 'DELETE' }).then(() => true, gone);
    if (removed) return said({ removed: name }, `Removed endpoint: ${name}`);
  }
  throw new AppError('not_found', `there is no endpoint and no canary ${name}; perch model list shows both`);
};
