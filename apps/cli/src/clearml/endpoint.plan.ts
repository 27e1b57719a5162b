import { AppError, type EndpointSpecInput, type EngineSpec, type Version } from '@perch/contracts';
import { isTemplateEngine } from '../upload/python-template.plan.ts';
import { planAuxConfig } from './aux-config.plan.ts';
import { exactName, plainName, plainTag } from './name.ts';
import { planTensors } from './tensor.plan.ts';

/** Flags of `model add` and `model auto-update` as they were read. */
export interface ClearmlFlags {
  engine?: string;
  endpoint?: string;
  version?: string;
  modelId?: string;
  name?: string;
  project?: string;
  tags?: string[];
  published?: boolean;
  maxVersions?: string;
  inputSize?: string[];
  inputType?: string[];
  inputName?: string[];
  outputSize?: string[];
  outputType?: string[];
  outputName?: string[];
  auxConfig?: string[];
}

interface Notes {
  note(sentence: string): void;
}

/** The work is done by the module that --preprocess names, and no model is loaded. */
export const isCustom = (engine: string | undefined): boolean => engine === 'custom' || engine === 'custom_async';

/** The version holds the model's file, a Python model that opens it, and its configuration. */
export const isTemplate = (engine: string | undefined): boolean => isTemplateEngine(engine ?? '');

/** `triton` serves models, `custom` and `custom_async` are modules; the others are Python models of Triton here. */
export function checkEngine(engine: string | undefined): void {
  if (engine === 'triton' || isCustom(engine) || isTemplate(engine)) return;
  throw new AppError(
    'invalid',
    `--engine: wants triton, sklearn, xgboost, lightgbm, custom or custom_async, got "${engine ?? ''}"`,
  );
}

/** Endpoint names keep their slashes; other characters follow the rule for names. `--version` is a last segment. */
export function endpointNameOf(endpoint: string | undefined, version: string | undefined, notes: Notes): string {
  if (!endpoint) throw new AppError('invalid', '--endpoint: which endpoint? It is missing');
  const segments = [...endpoint.split('/').filter((part) => part.trim() !== ''), ...(version ? [version] : [])];
  const name = segments.map((part) => plainName(part, 'endpoint')).join('/');
  if (name !== [endpoint, version].filter(Boolean).join('/'))
    notes.note(`note: endpoint "${endpoint}" is called ${name} here`);
  return name;
}

/** Engine settings of the tensor flags and --aux-config; `configText`: --aux-config named a file with this text. */
export function engineOf(flags: ClearmlFlags, configText: string | undefined): EngineSpec {
  const aux: EngineSpec = configText === undefined ? planAuxConfig(flags.auxConfig ?? []) : { config: configText };
  const inputs = planTensors({ size: flags.inputSize, type: flags.inputType, name: flags.inputName }, 'input');
  const outputs = planTensors({ size: flags.outputSize, type: flags.outputType, name: flags.outputName }, 'output');
  const text = aux.config ?? '';
  // Dimensions are taken as they stand, so nothing is batched unless the auxiliary configuration says so.
  const batch = aux.maxBatchSize ?? (/(^|\s)max_batch_size\s*:/.test(text) ? undefined : 0);
  return {
    ...aux,
    ...(batch === undefined ? {} : { maxBatchSize: batch }),
    ...mergeTensors('inputs', inputs, /(^|[\s}\]])input\s*[:[{]/.test(text)),
    ...mergeTensors('outputs', outputs, /(^|[\s}\]])output\s*[:[{]/.test(text)),
  };
}

const mergeTensors = (key: 'inputs' | 'outputs', tensors: EngineSpec['inputs'], inText: boolean): EngineSpec => {
  if (!tensors) return {};
  if (inText)
    throw new AppError(
      'invalid',
      `--aux-config speaks of ${key} too; give them either there or by --${key.slice(0, -1)}-size, -type, -name`,
    );
  return { [key]: tensors };
};

/** ClearML joins tags by "or", unless the first one is `__$all`. */
export function tagRule(tags: readonly string[] | undefined): { tags: string[]; tagMatch: 'any' | 'all' } {
  const [first, ...rest] = tags ?? [];
  const all = first === '__$all';
  const wanted = (all ? rest : (tags ?? [])).filter((tag) => !tag.startsWith('__$'));
  const excluded = wanted.find((tag) => tag.startsWith('-'));
  if (excluded)
    throw new AppError('not_available_yet', `--tags ${excluded}: leaving versions out by a tag is not available yet`);
  return { tags: wanted.map(plainTag), tagMatch: all ? 'all' : 'any' };
}

export const modelNames = (flags: ClearmlFlags, notes: Notes): { project?: string; name?: string } => ({
  ...(flags.project === undefined ? {} : { project: plainName(flags.project, 'project', notes) }),
  ...(flags.name === undefined ? {} : { name: plainName(exactName(flags.name), 'model', notes) }),
});

const ofModels = [
  ['inputSize', '--input-size'], ['inputType', '--input-type'], ['inputName', '--input-name'],
  ['outputSize', '--output-size'], ['outputType', '--output-type'], ['outputName', '--output-name'],
  ['auxConfig', '--aux-config'],
] as const; // biome-ignore format: a table

/** Engine settings of `--engine custom`: none but that. What only a model server would read is said to be of no use. */
export function customEngine(flags: ClearmlFlags, notes: Notes): EngineSpec {
  const useless = ofModels.filter(([key]) => flags[key] !== undefined).map(([, flag]) => flag);
  if (useless.length > 0)
    notes.note(`note: ${useless.join(', ')}: not used with --engine ${flags.engine}; the module reads the body itself`);
  return { platform: 'custom' };
}

/** Engine settings of `--engine sklearn`: the version brings them. Throws `invalid` for a version that does not. */
export function templateEngine(flags: ClearmlFlags, version: Version, notes: Notes): EngineSpec {
  if (version.metadata['engine'] !== flags.engine)
    throw new AppError(
      'invalid',
      `--engine ${flags.engine}: ${version.project}/${version.name}@${version.number} was not uploaded for it; perch model import ${version.project}/${version.name} FILE --engine ${flags.engine}${flags.engine === 'sklearn' ? ' --allow-pickle' : ''}, or export the model to ONNX and use --engine triton`,
    );
  const useless = ofModels.filter(([key]) => flags[key] !== undefined).map(([, flag]) => flag);
  if (useless.length > 0)
    notes.note(
      `note: ${useless.join(', ')}: not used with --engine ${flags.engine}; the version brings its tensors x and y`,
    );
  return {};
}

/** `model add --engine custom` without a model: the module is all there is. */
export const planModule = (flags: ClearmlFlags, notes: Notes): Omit<EndpointSpecInput, 'model'> => ({
  kind: 'Endpoint',
  name: endpointNameOf(flags.endpoint, flags.version, notes),
  engine: customEngine(flags, notes),
});

/** Under what name the file of `--preprocess` is registered: the endpoint's, so that each change is its next number. */
export const moduleNameOf = (flags: ClearmlFlags, notes: Notes): string =>
  endpointNameOf(flags.endpoint, undefined, notes)
    .toLowerCase()
    .split('/')
    .map((segment) => segment.replace(/^[._-]+/, '').slice(0, 64) || 'module')
    .slice(0, 4)
    .join('/');

/** `model auto-update`: an endpoint that follows the newest versions. */
export function planAutoUpdate(
  flags: ClearmlFlags,
  model: { project: string; name: string },
  engine: EngineSpec,
  notes: Notes,
): EndpointSpecInput {
  const maxVersions = Number(flags.maxVersions ?? '1');
  if (!Number.isInteger(maxVersions) || maxVersions < 1)
    throw new AppError('invalid', `--max-versions: wants at least 1, got "${flags.maxVersions}"`);
  return {
    kind: 'Endpoint',
    name: endpointNameOf(flags.endpoint, undefined, notes),
    model: { ...model, maxVersions, select: { ...tagRule(flags.tags), published: flags.published === true } },
    engine,
  };
}

/** `model add`: an endpoint that serves one version. */
export const planAdd = (
  flags: ClearmlFlags,
  model: { project: string; name: string; number: number },
  engine: EngineSpec,
  notes: Notes,
): EndpointSpecInput => ({
  kind: 'Endpoint',
  name: endpointNameOf(flags.endpoint, flags.version, notes),
  model: { project: model.project, name: model.name, version: model.number },
  engine,
});
