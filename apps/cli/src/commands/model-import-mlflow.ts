import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { AppError } from '@perch/contracts';
import { parse } from 'yaml';
import type { Invocation } from '../invocation.ts';
import type { Shown } from '../output.ts';
import { parseModel } from '../reference.ts';
import { type FoundFile, findFiles } from '../upload/manifest.source.ts';
import { type MlflowPlan, planMlflow } from '../upload/mlflow.plan.ts';
import { uploadVersion } from '../upload/version.apply.ts';
import type { Options } from '../verb.ts';
import { serveImported } from './model-import-huggingface.ts';
import { importTemplate } from './model-import-template.ts';
import { carriedProcessing, finish, wishOf } from './model-upload.ts';

async function readMlmodel(files: readonly FoundFile[], folder: string): Promise<unknown> {
  const found = files.find(({ path }) => path === 'MLmodel');
  if (!found) throw new AppError('invalid', `${folder} holds no MLmodel, wanted the folder of one MLflow model`);
  try {
    return parse(await readFile(found.file, 'utf8'));
  } catch {
    throw new AppError('invalid', `${found.file} is not valid YAML`);
  }
}

/** `perch model import project/name DIR --from mlflow`: the ONNX flavor, else a model file behind the Python template. */
export async function importMlflow(
  invocation: Invocation,
  [reference, folder]: readonly (string | undefined)[],
  options: Options,
): Promise<Shown> {
  if (!reference || !folder)
    throw new AppError('invalid', 'wants a model and a folder: perch model import project/name DIR --from mlflow');
  const { files } = await findFiles(folder);
  const plan = planMlflow(
    await readMlmodel(files, folder),
    files.map(({ path }) => path),
  );
  if (plan.kind === 'onnx') return importGraph(invocation, reference, { plan, files }, options);
  const found = files.find(({ path }) => path === plan.file)!;
  const file = { ...found, path: basename(found.path) };
  return importTemplate(invocation, { reference, engine: plan.engine, file, metadata: plan.metadata }, options);
}

async function importGraph(
  invocation: Invocation,
  reference: string,
  { plan, files }: { plan: Extract<MlflowPlan, { kind: 'onnx' }>; files: readonly FoundFile[] },
  options: Options,
): Promise<Shown> {
  const model = parseModel(reference);
  const client = await invocation.admin();
  const { processing } = await carriedProcessing(client, options);
  const { metadata, ...wish } = wishOf(options);
  const uploaded = await uploadVersion(client, {
    model,
    files: plan.files.map(({ from, to }) => ({ ...files.find(({ path }) => path === from)!, path: to })),
    always: options['newVersion'] === true,
    progress: invocation.output === 'table',
    framework: 'onnx',
    ...(processing ? { processing } : {}),
    ...wish,
    metadata: { ...plan.metadata, ...metadata },
  });
  const inGraph = uploaded.version.signature;
  for (const side of ['inputs', 'outputs'] as const) {
    const said = plan.names[side].filter((name) => inGraph && !inGraph[side].some((tensor) => tensor.name === name));
    if (said.length > 0)
      invocation.note(
        `note: MLmodel calls ${side} ${said.join(', ')}, the graph ${inGraph![side].map(({ name }) => name).join(', ')}; the graph's names are served`,
      );
  }
  const shown = await finish(
    invocation,
    client,
    uploaded,
    options['endpoint'] === undefined ? options : { ...options, publish: true },
  );
  return serveImported(client, { shown, model, processing, version: uploaded.version }, options);
}
