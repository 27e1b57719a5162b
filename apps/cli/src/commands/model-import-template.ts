import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Invocation } from '../invocation.ts';
import type { Shown } from '../output.ts';
import { parseModel } from '../reference.ts';
import type { FoundFile } from '../upload/manifest.source.ts';
import { planTemplate, type TemplateEngine, type TemplateFiles } from '../upload/python-template.plan.ts';
import { uploadVersion } from '../upload/version.apply.ts';
import type { Options } from '../verb.ts';
import { serveImported } from './model-import-huggingface.ts';
import { carriedProcessing, finish, wishOf } from './model-upload.ts';

export interface TemplateSource {
  reference: string;
  engine: TemplateEngine;
  /** The model's file; its path is its name. */
  file: FoundFile;
  metadata?: Record<string, string>;
}

/** A model file of scikit-learn, XGBoost or LightGBM becomes a version that Triton's Python back-end serves. */
export async function importTemplate(
  invocation: Invocation,
  { reference, engine, file, metadata: facts }: TemplateSource,
  options: Options,
): Promise<Shown> {
  const model = parseModel(reference);
  const plan = planTemplate({
    engine,
    file: file.path,
    allowPickle: options['allowPickle'] === true,
    method: options['method'],
    features: options['features'] === undefined ? undefined : Number(options['features']),
    outputType: options['outputType'],
  });
  const client = await invocation.admin();
  const { processing } = await carriedProcessing(client, options);
  const { metadata, framework: _framework, ...wish } = wishOf(options);
  const folder = await mkdtemp(join(tmpdir(), 'perch-template-'));
  try {
    const uploaded = await uploadVersion(client, {
      model,
      files: [...(await written(folder, plan)), { ...file, path: plan.modelPath }],
      always: options['newVersion'] === true,
      progress: invocation.output === 'table',
      framework: 'python',
      ...(processing ? { processing } : {}),
      ...(plan.pickle ? { allowPickle: true as const } : {}),
      ...wish,
      metadata: { engine, ...facts, ...metadata },
    });
    const publishing = options['endpoint'] === undefined ? options : { ...options, publish: true };
    const shown = await finish(invocation, client, uploaded, publishing);
    return serveImported(client, { shown, model, processing, version: uploaded.version }, options);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function written(folder: string, { texts }: TemplateFiles): Promise<FoundFile[]> {
  return Promise.all(
    Object.entries(texts).map(async ([path, content]) => {
      const file = join(folder, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content);
      const { size, mtimeMs } = await stat(file);
      return { path, file, size, mtimeMs };
    }),
  );
}
