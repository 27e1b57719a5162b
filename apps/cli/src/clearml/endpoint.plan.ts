import { AppError, type EndpointSpecInput, type EngineSpec } from '@perch/contracts';
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

const foreignEngines = ['sklearn', 'xgboost', 'lightgbm', 'custom', 'custom_async'];

/** Only `triton` serves models here; the others ran Python in ClearML's own process. */
export function checkEngine(engine: string | undefined): void {
  if (engine === 'triton') return;
  if (foreignEngines.includes(engine ?? ''))
    throw new AppError(
      'invalid',
      `--engine ${engine}: models run on Triton here; export the model to ONNX (skl2onnx, onnxmltools) and use --engine triton`,
    );
  throw new AppError('invalid', `--engine: wants triton, got "${engine ?? ''}"`);
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
