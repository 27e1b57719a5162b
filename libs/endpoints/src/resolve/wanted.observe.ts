import { Inject, Injectable } from '@nestjs/common';
import { digestOf, type EndpointSpec, type ResolvedEngine, tritonModelName } from '@perch/contracts';
import { ExternalStore, type Holding } from '@perch/fleet';
import { Transactions, type Tx } from '@perch/platform/database';
import type { DeploymentRow } from '../deployment.store.ts';
import type { WantedVersion } from '../endpoint.plan.ts';
import { heldDeployment, selectHeld, splitSource } from '../external-endpoint.plan.ts';
import { sourceDigest } from './engine.plan.ts';
import { GraphFault, LayoutFault } from './layout-fault.ts';
import { ResolutionSource } from './resolution.source.ts';
import { usesDigest } from './uses.plan.ts';
import { selectVersions, type VersionFacts } from './version.plan.ts';
import { type ServableVersion, VERSIONS, type VersionSource } from './version.source.ts';

export interface WantedSight {
  modelExists: boolean;
  /** Newest first. */
  wanted: WantedVersion[];
}

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
  ) {}

  async observe(spec: EndpointSpec, known: readonly DeploymentRow[]): Promise<WantedSight> {
    if (spec.model.source) {
      const numbers = await this.heldNumbers(spec, spec.model.source, known);
      return { modelExists: numbers.length > 0, wanted: numbers.map((number) => heldDeployment(spec, number)) };
    }
    const versions = await this.versions.versionsOf(spec.model.project, spec.model.name);
    const byNumber = new Map(versions.map((version) => [version.number, version]));
    const wanted: WantedVersion[] = [];
    for (const number of selectVersions(spec.model, versions))
      wanted.push(await this.resolve(spec, byNumber.get(number)!, known));
    return { modelExists: versions.length > 0, wanted };
  }

  /** Numbers alone, for predictions. */
  async wantedNumbers(spec: EndpointSpec): Promise<number[]> {
    if (spec.stopped) return [];
    if (spec.model.source) return this.heldNumbers(spec, spec.model.source, []);
    return selectVersions(spec.model, await this.versions.versionsOf(spec.model.project, spec.model.name));
  }

  /** What external Tritons hold of the model that a source names. */
  async holdings(tx: Tx, source: string): Promise<Holding[]> {
    const { scope, model } = splitSource(source);
    return this.external.holdings(tx, scope, model);
  }

  /** All versions there are for an endpoint to take, in whatever state; of an external Triton those that it has. */
  async versionsFor({ model }: EndpointSpec): Promise<VersionFacts[]> {
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
    if (spec.model.source !== undefined || spec.stopped) return undefined;
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

  private async resolve(
    spec: EndpointSpec,
    version: ServableVersion,
    known: readonly DeploymentRow[],
  ): Promise<WantedVersion> {
    const used = await this.resolution.usesOf(`${spec.model.project}/${spec.model.name}`, version);
    const own = sourceDigest(spec, version);
    const source = used.length === 0 ? own : digestOf({ own, uses: usesDigest(used) });
    const same = known.find((row) => row.source_digest === source);
    const { number } = version;
    if (same)
      return {
        version: number,
        digest: same.digest,
        sourceDigest: source,
        tritonModel: same.triton_model,
        body: same.body,
        fault: same.body ? null : same.reason,
      };
    try {
      const { origins: _origins, ...resolved } = await this.resolution.resolve(spec, version, used);
      return { version: number, sourceDigest: source, fault: null, ...resolved };
    } catch (error) {
      if (!(error instanceof LayoutFault)) throw error;
      const digest = digestOf({ source, fault: error.message });
      const tritonModel = tritonModelName(spec.model.name, number, digest);
      return { version: number, digest, sourceDigest: source, tritonModel, body: null, fault: error.message };
    }
  }
}
