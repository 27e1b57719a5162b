import type { Framework, ManifestFile, ResolvedEngine, Signature, VersionUses } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { VersionFacts } from './version.plan.ts';

/** A version of the registry as far as serving looks at it. */
export interface ServableVersion extends VersionFacts {
  id: string;
  manifestDigest: string;
  framework: Framework | null;
  signature: Signature | null;
  uses?: VersionUses | undefined;
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
  /** Models that an ensemble steps into, each once; absent: it is none. `version` -1: the newest. */
  steps?: { model: string; version: number }[];
}

/** Reads `config.pbtxt` texts as Triton does. Throws `invalid` that names `thing`, line and column of the first fault. */
export interface ConfigTexts {
  read(text: string, thing: string): ConfigSight;
  /** The text of an ensemble whose steps call the models under these names, whatever version they held. */
  renameSteps(text: string, names: ReadonlyMap<string, string>): string;
  /** The whole text of a model's configuration, for a server that knows best whether to take a GPU. */
  render(name: string, engine: ResolvedEngine): string;
  /** Whether two texts say the same of a model of this name. */
  same(name: string, a: string, b: string): boolean;
}
export const CONFIG_TEXTS = Symbol('config texts');
