import { AppError } from '@perch/contracts';
import { isTemplateEngine, type TemplateEngine } from './python-template.plan.ts';

type Yaml = Record<string, unknown>;

/** How an MLflow folder is taken: its ONNX graph, or a model file that the Python template serves. */
export type MlflowPlan = { metadata: Record<string, string>; names: MlflowNames } & (
  | { kind: 'onnx'; files: { from: string; to: string }[] }
  | { kind: 'template'; engine: TemplateEngine; file: string }
);

/** Names of the signature's inputs and outputs, where it has any. */
export interface MlflowNames {
  inputs: string[];
  outputs: string[];
}

const object = (value: unknown): Yaml =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Yaml) : {};
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

function namesOf(said: unknown): string[] {
  try {
    const columns: unknown = typeof said === 'string' ? JSON.parse(said) : said;
    return Array.isArray(columns) ? columns.flatMap((column) => text(object(column)['name']) ?? []) : [];
  } catch {
    return [];
  }
}

const refuse = (message: string): never => {
  throw new AppError('invalid', `MLmodel: ${message}`);
};

/** Weights beside the graph keep their name: the graph refers to them by it. */
function planOnnx(flavor: Yaml, paths: readonly string[]): { from: string; to: string }[] {
  const data = text(flavor['data']) ?? refuse('its onnx flavor names no data');
  const graph = paths.includes(data)
    ? data
    : paths.find((path) => path.startsWith(`${data}/`) && path.endsWith('.onnx'));
  if (!graph) return refuse(`its onnx flavor names ${data}, which the folder does not hold`);
  const folder = graph.slice(0, graph.lastIndexOf('/') + 1);
  const beside = paths.filter(
    (path) =>
      path !== graph &&
      path.startsWith(folder) &&
      /^[^/]+(\.onnx_data|\.onnx\.data|\.data|\.bin)$/.test(path.slice(folder.length)),
  );
  return [{ from: graph, to: 'model.onnx' }, ...beside.map((path) => ({ from: path, to: path.slice(folder.length) }))];
}

/** What is taken of the folder, by the parsed `MLmodel` and the paths beside it. Throws `invalid` with what to do. */
export function planMlflow(mlmodel: unknown, paths: readonly string[]): MlflowPlan {
  const { flavors: given, signature: said, ...rest } = object(mlmodel);
  const flavors = object(given);
  const signature = object(said);
  const facts = {
    'mlflow.run_id': text(rest['run_id']),
    'mlflow.model_uuid': text(rest['model_uuid']),
    'mlflow.version': text(rest['mlflow_version']),
    'mlflow.created': text(rest['utc_time_created']),
  };
  const metadata = Object.fromEntries(Object.entries(facts).flatMap(([key, value]) => (value ? [[key, value]] : [])));
  const names = { inputs: namesOf(signature['inputs']), outputs: namesOf(signature['outputs']) };
  if (flavors['onnx']) return { kind: 'onnx', files: planOnnx(object(flavors['onnx']), paths), metadata, names };
  const engine = Object.keys(flavors).find(isTemplateEngine);
  if (!engine) {
    const has = Object.keys(flavors).join(', ') || 'none';
    return refuse(
      `its flavors are ${has}; wanted onnx, sklearn, xgboost or lightgbm. A python_function alone is arbitrary Python: log the model with mlflow.onnx.log_model, or upload a Python model for Triton`,
    );
  }
  const flavor = object(flavors[engine]);
  const file = text(flavor['pickled_model']) ?? text(flavor['data']) ?? refuse(`its ${engine} flavor names no file`);
  if (!paths.includes(file)) refuse(`its ${engine} flavor names ${file}, which the folder does not hold`);
  const version = text(flavor[`${engine === 'xgboost' ? 'xgb' : engine === 'lightgbm' ? 'lgb' : engine}_version`]);
  return {
    kind: 'template',
    engine,
    file,
    names,
    metadata: { ...metadata, ...(version ? { 'engine.version': version } : {}) },
  };
}
