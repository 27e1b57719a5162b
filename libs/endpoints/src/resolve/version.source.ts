import type {
  FileFacts,
  Framework,
  ManifestFile,
  ProcessingSpec,
  ResolvedEngine,
  Signature,
  VersionUses,
} from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { VersionFacts } from './version.plan.ts';

/** A version of the registry as far as serving looks at it. */
export interface ServableVersion extends VersionFacts {
  id: string;
  manifestDigest: string;
  framework: Framework | null;
  signature: Signature | null;
  facts?: FileFacts;
  metadata?: Record<string, string>;
  uses?: VersionUses | undefined;
  /** Of endpoints that do not say their own. */
  processing?: ProcessingSpec | undefined;
}

/** Where versions come from: the registry. */
export interface VersionSource {
  /** All versions of a model in any order and state; none when the model does not exist. */
  versionsOf(project: string, model: string): Promise<ServableVersion[]>;
  /** Models (`project/name`) of which a draft or published version uses the given one. */
  modelsUsing(model: string): Promise<string[]>;
  filesOf(versionId: string): Promise<ManifestFile[]>;
  /** A small text file of a version (`config.pbtxt`). Throws when it cannot be read now. */
  textOf(file: ManifestFile): Promise<string>;
  /** Signed GETs by hash, good for some minutes; what is not in the store is absent. */
  urlsOf(hashes: readonly string[]): Promise<Map<string, string>>;
}
export const VERSIONS = Symbol('versions');

/** Keys that may call endpoints, as the routing table holds them. */
export interface KeySource {
  inferenceKeys(tx: Tx): Promise<{ id: string; hash: string; endpoints: string[] }[]>;
}
export const KEYS = Symbol('keys');

/** A tensor as a configuration declares it: dims without the batch dimension, `reshape` as the graph sees them. */
export interface DeclaredTensor {
  name: string;
  type: string;
  dims: readonly number[];
  reshape?: readonly number[];
}

/** What a `config.pbtxt` text decides by itself. */
export interface ConfigSight {
  /** Of the model; Perch gives its own. */
  name?: string;
  platform: string | undefined;
  maxBatchSize: number | undefined;
  declaresInputs: boolean;
  declaresOutputs: boolean;
  hasVersionPolicy: boolean;
  /** Which version directories the text wants served, and the text without those words; absent: it says nothing. */
  versionPolicy?: { kind: 'latest' | 'all' | 'specific'; versions: number[]; count: number };
  withoutPolicy?: string;
  inputs?: DeclaredTensor[];
  outputs?: DeclaredTensor[];
  /** Instances of kind GPU, or accelerators of GPUs. */
  wantsGpu?: boolean;
  namesAccelerators?: boolean;
  ccModelFilenames?: Record<string, string>;
  defaultModelFilename?: string;
  /** Paths below the model's folder that it names: labels, warm-up data, an environment. */
  namedFiles?: string[];
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
}
export const CONFIG_TEXTS = Symbol('config texts');
