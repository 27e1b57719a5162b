import type { Framework, ManifestFile, Signature } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { VersionFacts } from './version.plan.ts';

/** A version of the registry as far as serving looks at it. */
export interface ServableVersion extends VersionFacts {
  id: string;
  manifestDigest: string;
  framework: Framework | null;
  signature: Signature | null;
}

/** Where versions come from: the registry. */
export interface VersionSource {
  /** All versions of a model in any order and state; none when the model does not exist. */
  versionsOf(project: string, model: string): Promise<ServableVersion[]>;
  filesOf(versionId: string): Promise<ManifestFile[]>;
  /** A small text file of a version (`config.pbtxt`). Throws when it cannot be read now. */
  textOf(file: ManifestFile): Promise<string>;
}
export const VERSIONS = Symbol('versions');

/** Keys that may call endpoints, as the routing table holds them. */
export interface KeySource {
  inferenceKeys(tx: Tx): Promise<{ id: string; hash: string; endpoints: string[] }[]>;
}
export const KEYS = Symbol('keys');

/** What a `config.pbtxt` text decides by itself. */
export interface ConfigSight {
  platform: string | undefined;
  maxBatchSize: number | undefined;
  declaresInputs: boolean;
  declaresOutputs: boolean;
  hasVersionPolicy: boolean;
}

/** Reads `config.pbtxt` texts as Triton does. Throws `invalid` that names `thing`, line and column of the first fault. */
export interface ConfigTexts {
  read(text: string, thing: string): ConfigSight;
}
export const CONFIG_TEXTS = Symbol('config texts');
