import { Inject, Injectable } from '@nestjs/common';
import {
  AppError,
  type BoundProcessing,
  digestOf,
  type EndpointSpec,
  type EngineSpec,
  endpointSpec,
  isGoldenPath,
  type ManifestFile,
  manifestDigest,
  plainUses,
} from '@perch/contracts';
import type { ModelVariant } from '@perch/fleet';
import type { Origin } from '../export.plan.ts';
import { type ConfigLayer, configLayers, hasSettings } from './config-layers.plan.ts';
import { type HeldFiles, type Resolved, resolveDeployment } from './engine.plan.ts';
import { type Part, partsOf, planEnsemble, versionFoldersOf } from './ensemble.plan.ts';
import { isTritonFolder, LayoutFault, ownConfigFile, processingFiles } from './layout.plan.ts';
import { resolveModelless, wantsNoModel } from './modelless.plan.ts';
import { besideSteps, withNeeds } from './needs.plan.ts';
import { boundBuiltin, processingIdentity, processingOf } from './processing.plan.ts';
import { ProcessingSource } from './processing.source.ts';
import { besideOf, circleFault, pickUsed, requireUses, type Used } from './uses.plan.ts';
import {
  CONFIG_TEXTS,
  type ConfigTexts,
  type ServableVersion,
  VERSIONS,
  type VersionSource,
} from './version.source.ts';

/** Id of what stands for a version where there is no model. */
export const noFilesId = '';

export interface Resolution extends Resolved {
  /** By Triton model name, for the served model and all that it needs. */
  origins: Map<string, Origin>;
}

type ResolvedUse = Used & { variant: ModelVariant };

interface Whole {
  spec: EndpointSpec;
  version: ServableVersion;
  processing: BoundProcessing;
  files: readonly ManifestFile[];
  uses: readonly ResolvedUse[];
  origins: Map<string, Origin>;
}

/** What a folder is resolved among: models that steps may name, uses that code may call. */
interface Around {
  known: ReadonlyMap<string, ModelVariant>;
  called: readonly ResolvedUse[];
  isMain: boolean;
}

/** Makes out of a version and a spec what servers are told, with the other models that it consists of or calls. */
@Injectable()
export class ResolutionSource {
  constructor(
    @Inject(VERSIONS) private readonly versions: VersionSource,
    @Inject(CONFIG_TEXTS) private readonly configs: ConfigTexts,
    private readonly processing: ProcessingSource,
  ) {}

  /** What the version uses, looked up now, without reading files. What cannot be had carries its fault. */
  async usesOf(model: string, version: ServableVersion, path: readonly string[] = []): Promise<Used[]> {
    const here = [...path, model];
    const used: Used[] = [];
    for (const [name, use] of Object.entries(plainUses(version.uses))) {
      const picked = here.includes(use.model)
        ? { version: null, fault: circleFault([...here, use.model]) }
        : pickUsed(name, use, await this.versions.versionsOf(...splitModel(use.model)));
      const uses = picked.version ? await this.usesOf(use.model, picked.version, here) : [];
      used.push({ name, use, ...picked, uses });
    }
    return used;
  }

  /** Throws `LayoutFault` with the reason for people, other errors when the registry cannot be read now. */
  async resolve(spec: EndpointSpec, version: ServableVersion, used: readonly Used[]): Promise<Resolution> {
    requireUses(used);
    const origins = new Map<string, Origin>();
    const processing = await this.processing.bind(processingOf(spec, version));
    return { ...(await this.resolveWhole({ spec, version, processing, origins }, used)), origins };
  }

  private async resolveWhole(
    { spec, version, processing, origins }: Omit<Whole, 'files' | 'uses'>,
    used: readonly Used[],
  ): Promise<Resolved> {
    const files = version.id === noFilesId ? [] : await this.versions.filesOf(version.id);
    if (wantsNoModel(spec.engine, files, processing))
      return resolveModelless(spec, { ...version, files: [...files] }, processing);
    const uses: ResolvedUse[] = [];
    for (const one of used) {
      const inner = usedSpec(one.use.model, one.version!.number);
      const { body } = await this.resolveWhole(
        { spec: inner, version: one.version!, processing: boundBuiltin(), origins },
        one.uses,
      );
      uses.push({ ...one, variant: body.variants[0]! });
    }
    const whole: Whole = { spec, version, processing, files, uses, origins };
    const parts = partsOf(files);
    if (parts) return this.resolveParts(whole, parts);
    const config = ownConfigFile(files);
    const own = config && (await this.readFile(config, 'config.pbtxt of the version'));
    // A version that is nothing but an ensemble, whose steps are all models that it uses.
    if (own?.sight.steps) return this.resolveParts(whole, [{ name: spec.model.name, files: [...files], config }]);
    return this.resolvePlain(whole, own);
  }

  private resolvePlain({ spec, version, processing, files, uses, origins }: Whole, own: ConfigLayer | null): Resolved {
    if (spec.engine.folder !== undefined)
      throw new LayoutFault(`engine.folder ${spec.engine.folder}: the version holds one model, not several folders`);
    const layers = configLayers(spec, this.userConfig(spec.engine), own);
    const resolved = resolveDeployment(spec, { ...version, files }, layers, processing);
    const of = { name: spec.model.name, number: version.number };
    const variants = resolved.body.variants.map((variant) => withNeeds(variant, of, besideOf(uses)));
    const [number = 1] = versionFoldersOf(files);
    const platformSaid = spec.engine.platform === undefined || own?.sight.platform !== undefined;
    const bare = platformSaid && spec.engine.config === undefined && !hasSettings(spec.engine);
    const text = bare && (own || isTritonFolder(files)) ? (own?.text ?? null) : undefined;
    const folder = own?.sight.name ?? spec.model.name;
    for (const { tritonModel } of variants) origins.set(tritonModel, { folder, version: number, text });
    return withVariants(resolved, variants);
  }

  /** Each folder is a Triton model of its own, and the ensemble's steps are given their names. */
  private async resolveParts(whole: Whole, parts: readonly Part[]): Promise<Resolved> {
    const { spec, files, uses } = whole;
    const owns = new Map<string, ConfigLayer | null>();
    for (const { name, config } of parts)
      owns.set(name, config && (await this.readFile(config, `${name}/config.pbtxt of the version`)));
    const outside = new Set(uses.map(({ name }) => name));
    const plan = (wanted: string | undefined) => planEnsemble(parts.map(sightOf(owns)), wanted, outside);
    let { order, main } = plan(spec.engine.folder);
    if (spec.engine.config !== undefined) {
      owns.set(main, this.readConfig(spec.engine.config, 'engine.config'));
      ({ order, main } = plan(main));
    }
    const stepped = new Set([...owns.values()].flatMap((own) => own?.sight.steps?.map(({ model }) => model) ?? []));
    const called = uses.filter(({ name }) => !stepped.has(name));
    const known = new Map<string, ModelVariant>(uses.map(({ name, variant }) => [name, variant]));
    for (const { name, variant } of uses) {
      const origin = stepped.has(name) ? whole.origins.get(variant.tritonModel) : undefined;
      if (origin) whole.origins.set(variant.tritonModel, { ...origin, folder: name });
    }
    let resolved: Resolved | undefined;
    const isGolden = ({ path }: ManifestFile) => isGoldenPath(path);
    for (const name of order) {
      const own = parts.find((one) => one.name === name)!;
      const part = name === main ? { ...own, files: [...own.files, ...files.filter(isGolden)] } : own;
      resolved = this.resolvePart(whole, part, owns.get(name) ?? null, { known, called, isMain: name === main });
      known.set(name, resolved.body.variants[0]!);
    }
    // Processing may open files of the whole version, not only those of the folder that is served.
    return { ...resolved!, body: { ...resolved!.body, processingFiles: processingFiles(files) } };
  }

  private resolvePart(
    { spec, version, processing, origins }: Whole,
    part: Part,
    own: ConfigLayer | null,
    around: Around,
  ): Resolved {
    const { known, called, isMain } = around;
    const { folder: _folder, config: _config, ...said } = isMain ? spec.engine : {};
    const steps = own?.sight.steps?.map(({ model }) => ({ model, variant: known.get(model)! }));
    if (steps) requirePlainEngine(said, part.name);
    const engine: EngineSpec = steps ? { ...said, platform: 'ensemble' } : said;
    const names = new Map(steps?.map(({ model, variant }) => [model, variant.tritonModel]));
    const of = { name: isMain ? spec.model.name : part.name, number: version.number };
    // What an ensemble steps into is one version folder each, whatever policy its text has.
    const model = isMain ? spec.model : { ...spec.model, maxVersions: undefined, version: version.number };
    const bare = steps ? configLayers({ model, engine: {} }, null, own).over : own;
    const text = bare && steps ? { ...bare, text: this.configs.renameSteps(bare.text, names) } : bare;
    const wins = steps !== undefined || (isMain && spec.engine.config !== undefined);
    const resolved = resolveDeployment(
      { ...spec, engine, model: { ...spec.model, name: of.name } },
      { ...version, ...heldByPart(version, part), manifestDigest: manifestDigest(part.files) },
      // The user's text wins over settings; so does one that names the steps as servers know them.
      configLayers({ model, engine }, wins ? text : null, wins ? null : text),
      processing,
    );
    const variants = resolved.body.variants.map((variant) => {
      const calls = isMain || variant.model.engine.backend === 'python' ? called : [];
      return withNeeds(variant, of, steps ? besideSteps(steps.map((step) => step.variant)) : besideOf(calls));
    });
    const [folder = 1] = versionFoldersOf(part.files);
    const changed = isMain && (spec.engine.config !== undefined || hasSettings(said));
    const brought = changed ? undefined : (own?.text ?? null);
    for (const { tritonModel } of variants)
      origins.set(tritonModel, { folder: part.name, version: folder, text: brought });
    return withVariants(resolved, variants);
  }

  private userConfig({ config }: EngineSpec): ConfigLayer | null {
    return config === undefined ? null : this.readConfig(config, 'engine.config');
  }

  private async readFile(file: ManifestFile, thing: string): Promise<ConfigLayer> {
    return this.readConfig(await this.versions.textOf(file), thing);
  }

  private readConfig(text: string, thing: string): ConfigLayer {
    try {
      return { text, sight: this.configs.read(text, thing) };
    } catch (error) {
      if (error instanceof AppError && error.code === 'invalid') throw new LayoutFault(error.message);
      throw error;
    }
  }
}

const splitModel = (model: string): [project: string, name: string] => {
  const slash = model.indexOf('/');
  return [model.slice(0, slash), model.slice(slash + 1)];
};

/**
 * A used model is served as its files say; whoever wants other settings writes them into its config.pbtxt. It names one
 * version, so that a version_policy in its text is no question.
 */
const usedSpec = (model: string, version: number): EndpointSpec => {
  const [project, name] = splitModel(model);
  return endpointSpec.parse({ name: 'used', model: { project, name, version } });
};

const sightOf = (owns: ReadonlyMap<string, ConfigLayer | null>) => (part: Part) => ({
  name: part.name,
  versions: versionFoldersOf(part.files),
  sight: owns.get(part.name)?.sight ?? null,
});

/** What is known of the files of one folder. */
function heldByPart({ facts }: ServableVersion, { name, files }: Part): HeldFiles {
  const below = <T>(all: Record<string, T> | undefined) =>
    Object.fromEntries(
      Object.entries(all ?? {})
        .filter(([path]) => path.startsWith(`${name}/`))
        .map(([path, fact]) => [path.slice(name.length + 1), fact]),
    );
  return { files, signature: null, facts: { onnx: below(facts?.onnx), tensorrt: below(facts?.tensorrt) } };
}

function requirePlainEngine(engine: EngineSpec, folder: string): void {
  const ofModels = ['instances', 'dynamicBatching', 'inputs', 'outputs', 'maxBatchSize'] as const;
  const given = ofModels.find((key) => engine[key] !== undefined);
  if (given)
    throw new LayoutFault(
      `engine.${given}: ${folder} is an ensemble; its config.pbtxt and those of the models it steps into say that`,
    );
}

/** A new digest only where needs were added: what has none is what it always was. */
function withVariants(resolved: Resolved, variants: ModelVariant[]): Resolved {
  if (variants.every((variant, at) => variant === resolved.body.variants[at])) return resolved;
  const { processing } = resolved.body;
  return {
    digest: digestOf({
      identities: variants.map(({ model }) => model.digest),
      processing: processingIdentity(processing),
    }),
    tritonModel: variants[0]!.tritonModel,
    body: { ...resolved.body, variants },
  };
}
