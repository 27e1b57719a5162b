import { AppError } from '@perch/contracts';
import { bundleModule } from '../processing/bundle.ts';
import { look } from '../processing/facts.source.ts';
import { faultsError } from '../processing/fault.ts';
import { findModule, pathIn } from '../processing/module-folder.source.ts';
import { installedSdk } from '../processing/sdk.source.ts';
import { typeFaults } from '../processing/type-check.ts';
import { readSpecs } from '../spec/spec-file.source.ts';

/**
 * The specification that a file says: YAML or JSON as it stands, TypeScript type-checked, bundled and run in a process
 * that may nothing. Throws `invalid` with file and line where there is one.
 */
export async function readPipelineFile(file: string): Promise<Record<string, unknown>> {
  const spec = /\.[cm]?[jt]s$/.test(file) ? await fromCode(file) : await fromText(file);
  if (spec['kind'] !== 'Pipeline')
    throw new AppError('invalid', `${file}: kind: wants Pipeline, got ${JSON.stringify(spec['kind'])}`);
  return spec;
}

async function fromText(file: string): Promise<Record<string, unknown>> {
  const documents = await readSpecs(file);
  if (documents.length !== 1)
    throw new AppError('invalid', `${file}: holds ${documents.length} documents; perch apply -f takes several`);
  return { kind: 'Pipeline', ...documents[0]!.spec };
}

async function fromCode(file: string): Promise<Record<string, unknown>> {
  const folder = await findModule(file);
  const sdk = installedSdk();
  const { bytes } = await bundleModule(folder);
  const faults = await typeFaults(folder.entry, folder.root, sdk);
  if (faults.length > 0) throw faultsError(`${pathIn(folder.root, folder.entry)} has type errors`, faults);
  const { plain } = await look({ bundle: bytes, sdk });
  if (plain['kind'] !== 'Pipeline')
    throw new AppError('invalid', `${file}: its default export is no pipeline; wanted: export default definePipeline(name, …)`); // biome-ignore format: one sentence
  return plain;
}
