import {
  type BoundProcessing,
  digestOf,
  type EndpointSpec,
  type EngineSpec,
  type ManifestFile,
  tritonModelName,
} from '@perch/contracts';
import { guessesPlatform } from './artifact.plan.ts';
import type { DeploymentBody, ResolvableVersion, Resolved } from './engine.plan.ts';
import { isTritonFolder, ownConfigFile, processingFiles } from './layout.plan.ts';
import { processingIdentity, requireProcess } from './processing.plan.ts';

/** Its module does all the work: nothing is placed, loaded or asked. */
export const isModelless = (body: Pick<DeploymentBody, 'variants'> | null): boolean => body?.variants.length === 0;

/**
 * Whether there is no model to serve: `engine.platform: custom` says so, or nobody says anything of a platform and no
 * file of the version is a model, while the module has a `process` hook.
 */
export function wantsNoModel(engine: EngineSpec, files: readonly ManifestFile[], { module }: BoundProcessing): boolean {
  if (engine.platform !== undefined) return engine.platform === 'custom';
  const told = engine.formatPriority ?? engine.config ?? engine.folder;
  if (told !== undefined || !module?.facts.hooks.includes('process')) return false;
  return !isTritonFolder(files) && ownConfigFile(files) === null && !guessesPlatform(files);
}

/** What is deployed then: `files` are all the module's. Throws `LayoutFault` where nobody would do the work. */
export function resolveModelless(
  spec: EndpointSpec,
  version: Pick<ResolvableVersion, 'number' | 'manifestDigest' | 'files'>,
  processing: BoundProcessing,
): Resolved {
  requireProcess(processing);
  const digest = digestOf({ modelless: version.manifestDigest, processing: processingIdentity(processing) });
  return {
    digest,
    tritonModel: tritonModelName(spec.model.name, version.number, digest),
    body: { variants: [], processing, processingFiles: processingFiles(version.files, () => true) },
  };
}
