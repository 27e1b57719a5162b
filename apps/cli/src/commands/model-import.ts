import { AppError } from '@perch/contracts';
import { parseModel } from '../reference.ts';
import { planHuggingFace } from '../upload/huggingface.plan.ts';
import { findFiles } from '../upload/manifest.source.ts';
import { uploadVersion } from '../upload/version.apply.ts';
import type { Run } from '../verb.ts';
import { finish, wishOf } from './model-upload.ts';

const later: Record<string, string> = { mlflow: 'an MLflow folder' };

export const run: Run = async (invocation, places, options) => {
  const [reference, folder] = places;
  const kind = options['from'] as string;
  if (kind === 'triton') return (await import('./model-import-triton.ts')).importTriton(invocation, places, options);
  if (later[kind])
    throw new AppError('not_available_yet', `--from ${kind} is not available yet: it will read ${later[kind]}`);
  if (kind !== 'huggingface')
    throw new AppError('invalid', `--from: wants huggingface or triton, got "${kind}" (mlflow is not available yet)`);
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
  const client = await invocation.admin();
  const wish = { framework: 'onnx' as const, ...wishOf(options) };
  const progress = invocation.output === 'table';
  const uploaded = await uploadVersion(client, {
    model,
    files: chosen,
    always: options['newVersion'] === true,
    progress,
    ...wish,
  });
  return finish(invocation, client, uploaded, options);
};
