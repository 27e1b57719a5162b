import { readFile } from 'node:fs/promises';
import { AppError, type Endpoint, type ProcessingSpec, type Version } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import type { Invocation } from '../invocation.ts';
import type { Shown } from '../output.ts';
import { type ModelReference, parseModel, versionText } from '../reference.ts';
import { planHuggingFace } from '../upload/huggingface.plan.ts';
import { readHuggingFaceFiles } from '../upload/huggingface.source.ts';
import { endpointCommand, readHuggingFace } from '../upload/huggingface-facts.plan.ts';
import { type FoundFile, findFiles } from '../upload/manifest.source.ts';
import { uploadVersion } from '../upload/version.apply.ts';
import type { Options } from '../verb.ts';
import { carriedProcessing, finish, wishOf } from './model-upload.ts';

/** `perch model import project/name DIR`: files, facts and processing of a Hugging Face folder become a version. */
export async function importHuggingFace(
  invocation: Invocation,
  [reference, folder]: readonly (string | undefined)[],
  options: Options,
): Promise<Shown> {
  if (!reference || !folder)
    throw new AppError('invalid', 'wants a model and a folder: perch model import project/name DIR');
  const model = parseModel(reference);
  const { files } = await findFiles(folder);
  const plan = planHuggingFace(
    files.map(({ path }) => path),
    options['onnx'],
  );
  const chosen = plan.files.map(({ from, to }) => ({ ...files.find(({ path }) => path === from)!, path: to }));
  for (const path of plan.leftOut) invocation.note(`note: left out: ${path}`);
  const facts = readHuggingFace(await readHuggingFaceFiles(files), options['task']);
  for (const note of facts.notes) invocation.note(`note: ${note}`);
  const client = await invocation.admin();
  const { processing = facts.processing } = await carriedProcessing(client, options);
  const { metadata, ...wish } = wishOf(options);
  const uploaded = await uploadVersion(client, {
    model,
    files: chosen,
    always: options['newVersion'] === true,
    progress: invocation.output === 'table',
    framework: 'onnx',
    processing,
    ...wish,
    metadata: { ...facts.metadata, ...metadata },
  });
  await checkProcessing(uploaded.version, processing, chosen);
  const shown = await finish(invocation, client, uploaded, withEndpoint(options));
  return serveImported(client, { shown, model, processing, version: uploaded.version }, options);
}

/** An endpoint takes published versions, so asking for one publishes. */
const withEndpoint = (options: Options): Options =>
  options['endpoint'] === undefined ? options : { ...options, publish: true };

/** Loads the built-in over the files of this computer, so that what does not fit is told before anything is served. */
async function checkProcessing(
  version: Version,
  { builtin, options }: ProcessingSpec,
  files: readonly FoundFile[],
): Promise<void> {
  if (builtin === undefined || version.signature === null) return;
  const { loadProcessing } = await import('@perch/processing/host');
  const source = {
    list: () => files.map(({ path }) => path),
    async read(path: string) {
      const found = files.find((file) => file.path === path);
      if (!found) throw new AppError('not_found', `the folder has no file ${path}`);
      return readFile(found.file);
    },
  };
  try {
    const batches = version.signature.inputs.every(({ shape }) => shape[0] === -1);
    const setup = { builtin, files: source, signature: version.signature, maxBatchSize: batches ? 32 : 0 };
    const loaded = await loadProcessing({ ...setup, ...(options ? { options } : {}) });
    await loaded.unload();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(
      error.code,
      `${versionText(version)} is uploaded as a draft, but ${builtin} does not fit: ${error.message}; name another task with --task, or a module with --processing`,
      { cause: error },
    );
  }
}

export interface Imported {
  shown: Shown;
  model: ModelReference;
  /** Absent: the version carries none. */
  processing: ProcessingSpec | undefined;
  version: Version;
  /** Flags of the endpoint besides, as they are written. */
  flags?: string;
  engine?: Record<string, unknown>;
}

/** Adds the endpoint where one was named, else says the command that would. */
export async function serveImported(
  client: AdminClient,
  { shown, model, processing, flags, engine }: Imported,
  options: Options,
): Promise<Shown> {
  const named = typeof options['endpoint'] === 'string' ? options['endpoint'] : undefined;
  const name = named ?? model.name.toLowerCase();
  const reference = `${model.project}/${model.name}`;
  const command = [endpointCommand(name, reference, processing ?? {}), ...(flags ? [flags] : [])].join(' ');
  if (options['endpoint'] === undefined)
    return {
      ...shown,
      value: { ...(shown.value as object), endpointCommand: command },
      text: () => `${shown.text()}\nNext: ${command}`,
    };
  const there = await client.find<Endpoint>(`/endpoints/${encodeURIComponent(name)}`);
  if (!there)
    await client.call<Endpoint>('/endpoints', {
      method: 'POST',
      body: { kind: 'Endpoint', name, model, ...(engine ? { engine } : {}) },
    });
  const outcome = there
    ? `Endpoint ${name} exists and is left as it is.`
    : `Endpoint ${name} is added; it runs what the version carries: perch endpoint show ${name}`;
  return {
    ...shown,
    value: { ...(shown.value as object), endpoint: { name, outcome: there ? 'exists' : 'created' } },
    text: () => `${shown.text()}\n${outcome}`,
  };
}
