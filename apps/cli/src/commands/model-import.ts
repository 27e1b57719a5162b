import { basename } from 'node:path';
import { AppError } from '@perch/contracts';
import { isTemplateEngine, templateEngines } from '../upload/python-template.plan.ts';
import type { Run } from '../verb.ts';

export const run: Run = async (invocation, places, options) => {
  if (options['engine'] !== undefined) return importFile(invocation, places, options);
  switch (options['from']) {
    case 'triton':
      return (await import('./model-import-triton.ts')).importTriton(invocation, places, options);
    case 'mlflow':
      return (await import('./model-import-mlflow.ts')).importMlflow(invocation, places, options);
    case 'huggingface':
      return (await import('./model-import-huggingface.ts')).importHuggingFace(invocation, places, options);
    default:
      throw new AppError('invalid', `--from: wants huggingface, mlflow or triton, got "${options['from']}"`);
  }
};

/** `perch model import project/name model.pkl --engine sklearn`. */
const importFile: Run = async (invocation, [reference, path], options) => {
  const engine: string = options['engine'];
  if (!isTemplateEngine(engine))
    throw new AppError('invalid', `--engine: wants ${templateEngines.join(', ')}, got "${engine}"`);
  if (!reference || !path)
    throw new AppError('invalid', `wants a model and a file: perch model import project/name FILE --engine ${engine}`);
  const { findFiles } = await import('../upload/manifest.source.ts');
  const { files } = await findFiles(path);
  if (files.length !== 1)
    throw new AppError('invalid', `--engine ${engine}: wants one model file, and ${path} holds ${files.length}`);
  const { importTemplate } = await import('./model-import-template.ts');
  return importTemplate(
    invocation,
    { reference, engine, file: { ...files[0]!, path: basename(files[0]!.path) } },
    options,
  );
};
