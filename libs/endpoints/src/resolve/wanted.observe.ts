import { Inject, Injectable } from '@nestjs/common';
import {
  digestOf,
  type EndpointSpec,
  manifestDigest,
  type ResolvedEngine,
  splitModule,
  tritonModelName,
} from '@perch/contracts';
import { ExternalStore, type Holding } from '@perch/fleet';
import { Transactions, type Tx } from '@perch/platform/database';
import type { DeploymentRow } from '../deployment.store.ts';
import type { Refusal, WantedVersion } from '../endpoint.plan.ts';
import { heldDeployment, heldSourceDigest, selectHeld, splitSource } from '../external-endpoint.plan.ts';
import type { Refused } from '../traffic/quarantine.store.ts';
import { sourceDigest } from './engine.plan.ts';
import { GraphFault, LayoutFault } from './layout-fault.ts';
import { processingOf } from './processing.plan.ts';
import { ProcessingSource } from './processing.source.ts';
import { noFilesId, ResolutionSource } from './resolution.source.ts';
import { type Used, usesDigest } from './uses.plan.ts';
import { defaultMaxVersions, isComplete, selectVersions, type VersionFacts } from './version.plan.ts';
import { type ServableVersion, VERSIONS, type VersionSource } from './version.source.ts';

export interface WantedSight {
  modelExists: boolean;
  /** Newest first, without what a rollout refused. */
  wanted: WantedVersion[];
  /** What the rule would have in their place, newest first. */
  refusals: Refusal[];
  /** Versions of the model whose bytes are all there: drafts and published ones. */
  complete: ReadonlySet<number>;
  /** Versions that splits name, whether the rule wants them or not; absent = none. */
  named?: WantedVersion[];
}
export const nothingWanted: WantedSight = { modelExists: false, wanted: [], refusals: [], complete: new Set() };

/** What a spec would come to, as far as it can be told before anything is deployed. */
export interface WantedPreview {
  version: number;
  /** Of each way to run it. */
  engines: ResolvedEngine[];
  fault: string | null;
}

/** Reads from the registry what an endpoint's rule wants, and resolves what is not deployed yet. */
@Injectable()
export class WantedObserve {
  constructor(
    @Inject(VERSIONS) private readonly versions: VersionSource,
    private readonly resolution: ResolutionSource,
    private readonly transactions: Transactions,
    private readonly external: ExternalStore,
    private readonly processing: ProcessingSource,
  ) {}

  /** `refused`: what rollouts of this endpoint refused; the rule goes on with the next version that is none of it. */
  async observe(
    spec: EndpointSpec,
    known: readonly DeploymentRow[],
    refused: readonly Refused[] = [],
  ): Promise<WantedSight> {
    if (spec.model.source) {
      const numbers = await this.heldNumbers(spec, spec.model.source, known);
      const wanted: WantedVersion[] = [];
      for (const number of numbers) wanted.push(await this.resolveHeld(spec, number, known));
      return { ...nothingWanted, modelExists: numbers.length > 0, wanted };
    }
    if (spec.model.none) return this.observeModule(spec, known, refused);
    const versions = await this.versions.versionsOf(spec.model.project, spec.model.name);
    const byNumber = new Map(versions.map((version) => [version.number, version]));
    const { maxVersions = defaultMaxVersions } = spec.model;
    const wanted: WantedVersion[] = [];
    const refusals: Refusal[] = [];
    for (const number of selectVersions({ ...spec.model, maxVersions: maxVersions + refused.length }, versions)) {
      if (wanted.length === maxVersions) break;
      const found = await this.resolve(spec, byNumber.get(number)!, known, refused);
      if ('sourceDigest' in found) wanted.push(found);
      else refusals.push(found);
    }
    const complete = new Set(versions.filter(isComplete).map(({ number }) => number));
    return { modelExists: versions.length > 0, wanted, refusals, complete };
  }

  /** One version as it would be deployed now, whether the rule wants it or not. Undefined: there is no such version to deploy. */
  async observeOne(
    spec: EndpointSpec,
    number: number,
    known: readonly DeploymentRow[],
  ): Promise<WantedVersion | undefined> {
    if (spec.model.source !== undefined)
      return (await this.versionsFor(spec)).some((one) => one.number === number)
        ? this.resolveHeld(spec, number, known)
        : undefined;
    if (spec.model.none)
      return number === moduleNumber(spec)
        ? this.resolveSource(spec, moduleVersion(spec), [], known, sourceDigest(spec, moduleVersion(spec)))
        : undefined;
    const versions = await this.versions.versionsOf(spec.model.project, spec.model.name);
    const version = versions.find((one) => one.number === number && isComplete(one));
    return version && ((await this.resolve(spec, version, known, [])) as WantedVersion);
  }

  /** Numbers alone, for predictions. */
  async wantedNumbers(spec: EndpointSpec): Promise<number[]> {
    if (spec.stopped) return [];
    if (spec.model.source) return this.heldNumbers(spec, spec.model.source, []);
    if (spec.model.none) return [moduleNumber(spec)];
    return selectVersions(spec.model, await this.versions.versionsOf(spec.model.project, spec.model.name));
  }

  /** What external Tritons hold of the model that a source names. */
  async holdings(tx: Tx, source: string): Promise<Holding[]> {
    const { scope, model } = splitSource(source);
    return this.external.holdings(tx, scope, model);
  }

  /** All versions there are for an endpoint to take, in whatever state; of an external Triton those that it has. */
  async versionsFor({ model, processing }: EndpointSpec): Promise<VersionFacts[]> {
    if (model.none) return [moduleVersion({ model, processing })];
    if (model.source === undefined) return this.versions.versionsOf(model.project, model.name);
    const holdings = await this.holdings(this.transactions.manager, model.source);
    const numbers = new Set(holdings.map(({ version }) => Number(version)).filter(Number.isSafeInteger));
    return [...numbers].map((number) => ({ number, state: 'published' as const, tags: [] }));
  }

  private async heldNumbers(spec: EndpointSpec, source: string, known: readonly DeploymentRow[]): Promise<number[]> {
    const holdings = await this.holdings(this.transactions.manager, source);
    return selectHeld(spec, holdings, new Set(known.map((row) => row.triton_model)));
  }

  /** How the newest wanted version would run, or its graph's word against the spec; undefined: nothing can be known now. */
  async preview(spec: EndpointSpec): Promise<WantedPreview | undefined> {
    if (spec.model.source !== undefined || spec.model.none || spec.stopped) return undefined;
    const { project, name } = spec.model;
    const versions = await this.versions.versionsOf(project, name);
    const [newest] = selectVersions(spec.model, versions);
    const version = versions.find(({ number }) => number === newest);
    if (!version) return undefined;
    try {
      const used = await this.resolution.usesOf(`${project}/${name}`, version);
      const { body } = await this.resolution.resolve(spec, version, used);
      return { version: version.number, engines: body.variants.map(({ model }) => model.engine), fault: null };
    } catch (error) {
      // Whatever else is in the way may go by itself, and is shown as the deployment's reason until then.
      return error instanceof GraphFault ? { version: version.number, engines: [], fault: error.message } : undefined;
    }
  }

  /** Of an endpoint without a model: the one version that its module's number is. */
  private async observeModule(
    spec: EndpointSpec,
    known: readonly DeploymentRow[],
    refused: readonly Refused[],
  ): Promise<WantedSight> {
    const version = moduleVersion(spec);
    const found = await this.resolve(spec, version, known, refused);
    const complete = new Set([version.number, ...known.map((row) => row.version)]);
    return 'sourceDigest' in found
      ? { ...nothingWanted, modelExists: true, wanted: [found], complete }
      : { ...nothingWanted, modelExists: true, refusals: [found], complete };
  }

  /** What an external Triton holds has no files; only its processing may have to be found. */
  private async resolveHeld(
    spec: EndpointSpec,
    version: number,
    known: readonly DeploymentRow[],
  ): Promise<WantedVersion> {
    const source = heldSourceDigest(spec, version);
    const same = known.find((row) => row.source_digest === source);
    if (same) return asWanted(same);
    try {
      return heldDeployment(spec, version, await this.processing.bind(processingOf(spec, {})));
    } catch (error) {
      return faulty(error, { source, version, name: spec.model.name });
    }
  }

  private async resolve(
    spec: EndpointSpec,
    version: ServableVersion,
    known: readonly DeploymentRow[],
    refused: readonly Refused[],
  ): Promise<WantedVersion | Refusal> {
    const used = await this.resolution.usesOf(`${spec.model.project}/${spec.model.name}`, version);
    const own = sourceDigest(spec, version);
    const source = used.length === 0 ? own : digestOf({ own, uses: usesDigest(used) });
    const { number } = version;
    const refusal = refused.find(({ sourceDigest }) => sourceDigest === source);
    if (refusal) return { version: number, digest: refusal.digest, reason: refusal.reason };
    const found = await this.resolveSource(spec, version, used, known, source);
    const same = refused.find(({ digest }) => digest === found.digest);
    return same ? { version: number, digest: same.digest, reason: same.reason } : found;
  }

  private async resolveSource(
    spec: EndpointSpec,
    version: ServableVersion,
    used: readonly Used[],
    known: readonly DeploymentRow[],
    source: string,
  ): Promise<WantedVersion> {
    const { number } = version;
    const same = known.find((row) => row.source_digest === source);
    if (same) return asWanted(same);
    try {
      const { origins: _origins, ...resolved } = await this.resolution.resolve(spec, version, used);
      return { version: number, sourceDigest: source, fault: null, ...resolved };
    } catch (error) {
      return faulty(error, { source, version: number, name: spec.model.name });
    }
  }
}

const moduleNumber = ({ processing }: Pick<EndpointSpec, 'processing'>): number =>
  splitModule(processing!.module!).number ?? 0;

/** Stands for the version of an endpoint that has no model: it holds no files. */
const moduleVersion = (spec: Pick<EndpointSpec, 'model' | 'processing'>): ServableVersion => ({
  id: noFilesId,
  number: moduleNumber(spec),
  state: 'published',
  tags: [],
  manifestDigest: manifestDigest([]),
  framework: null,
  signature: null,
});

const asWanted = (row: DeploymentRow): WantedVersion => ({
  version: row.version,
  digest: row.digest,
  sourceDigest: row.source_digest,
  tritonModel: row.triton_model,
  body: row.body,
  fault: row.body ? null : row.reason,
});

/** A deployment that fails with the reason; other errors are thrown again. */
function faulty(error: unknown, of: { source: string; version: number; name: string }): WantedVersion {
  if (!(error instanceof LayoutFault)) throw error;
  const { source, version, name } = of;
  const digest = digestOf({ source, fault: error.message });
  const tritonModel = tritonModelName(name, version, digest);
  return { version, digest, sourceDigest: source, tritonModel, body: null, fault: error.message };
}
