import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
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
  customEngine,
  endpointNameOf,
  engineOf,
  isCustom,
  isTemplate,
  modelNames,
  moduleNameOf,
  planAdd,
  planAutoUpdate,
  planModule,
  tagRule,
  templateEngine,
} from '../clearml/endpoint.plan.ts';
import { preprocessRefusal } from '../clearml/preprocess.plan.ts';
import type { Invocation } from '../invocation.ts';
import { type Shown, said } from '../output.ts';
import { parseReference } from '../reference.ts';
import { processingOfName } from '../spec/processing-flags.plan.ts';
import type { Options, Run } from '../verb.ts';
import { findVersion } from '../version.source.ts';
import { waitMs } from '../wait.ts';
import { endpointPath, waitReady } from './ready.ts';
import { splitPath } from './split-change.ts';

/**
 * `--preprocess`: a file of TypeScript is checked and registered under the endpoint's name, unless it is there already; a
 * built-in's or module's name is taken; a Python file is refused with the way out.
 */
async function processingOf(
  invocation: Invocation,
  client: AdminClient,
  flags: Options,
): Promise<EndpointSpecInput['processing'] | undefined> {
  const file = flags['preprocess'] as string | undefined;
  if (file === undefined) {
    if (!isCustom(flags['engine'])) return undefined;
    throw new AppError('invalid', `--engine ${flags['engine']}: which module? Give --preprocess FILE.ts`);
  }
  const isPython = /\.py$/.test(file);
  const isCode = /\.[mc]?[tj]s$/.test(file);
  if (!isPython && !isCode && !existsSync(file)) return processingOfName(file);
  if (isCode || (!isPython && (await stat(file)).isDirectory())) {
    const { addModule } = await import('../processing/register.apply.ts');
    const name = moduleNameOf(flags as ClearmlFlags, invocation);
    const { module, outcome } = await addModule(client, name, file, (sentence) => invocation.note(sentence));
    invocation.note(`module ${module.name}@${module.number} is ${outcome}`);
    return { module: `${module.name}@${module.number}` };
  }
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
  const what = servedText(spec);
  invocation.hint(`Next: perch endpoint show ${spec.name}`);
  return said(result, `Endpoint /${spec.name}/ ${what} (${result.outcome}, generation ${result.generation}).`);
}

function servedText({ model, processing }: EndpointSpecInput): string {
  if (!model) return `runs module ${processing?.module}`;
  const { project, name, version } = model;
  return version === undefined ? `follows ${project}/${name}` : `serves ${project}/${name}@${version}`;
}

/** Settings of the model server as the flags give them; of a module alone, or of a version that brings them, there are none. */
async function engineFor(invocation: Invocation, flags: ClearmlFlags, version: () => Promise<Version>) {
  if (isCustom(flags.engine)) return customEngine(flags, invocation);
  if (isTemplate(flags.engine)) return templateEngine(flags, await version(), invocation);
  return engineOf(flags, await auxConfigText(flags.auxConfig));
}

const namesNoModel = ({ modelId, name, project, tags }: ClearmlFlags): boolean =>
  modelId === undefined && name === undefined && project === undefined && tags === undefined;

export const add: Run = async (invocation, _args, options) => {
  const flags = options as ClearmlFlags;
  checkEngine(flags.engine);
  const client = await invocation.admin();
  if (isCustom(flags.engine) && namesNoModel(flags)) {
    const processing = await processingOf(invocation, client, options);
    const spec = { ...planModule(flags, invocation), processing } as EndpointSpecInput;
    return applySpec(invocation, client, spec, options);
  }
  const engine = await engineFor(invocation, flags, () => selectVersion(client, flags, invocation));
  const version = await selectVersion(client, flags, invocation);
  const processing = await processingOf(invocation, client, options);
  const spec = planAdd(flags, version, engine, invocation);
  return applySpec(invocation, client, { ...spec, ...(processing ? { processing } : {}) }, options);
};

export const autoUpdate: Run = async (invocation, _args, options) => {
  const flags = options as ClearmlFlags;
  checkEngine(flags.engine);
  const client = await invocation.admin();
  const engine = await engineFor(invocation, flags, () => selectVersion(client, flags, invocation));
  const model = await findModel(client, modelNames(flags, invocation));
  const processing = await processingOf(invocation, client, options);
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
