import { Inject, Injectable } from '@nestjs/common';
import { AppError, digestOf, type EndpointSpec, tritonModelName } from '@perch/contracts';
import type { DeploymentRow } from './deployment.store.ts';
import type { WantedVersion } from './endpoint.plan.ts';
import { type OwnConfig, resolveDeployment, sourceDigest } from './engine.plan.ts';
import { type Layout, LayoutFault, planLayout } from './layout.plan.ts';
import { selectVersions } from './version.plan.ts';
import {
  CONFIG_TEXTS,
  type ConfigTexts,
  type ServableVersion,
  VERSIONS,
  type VersionSource,
} from './version.source.ts';

export interface WantedSight {
  modelExists: boolean;
  /** Newest first. */
  wanted: WantedVersion[];
}

/** Reads from the registry what an endpoint's rule wants, and resolves what is not deployed yet. */
@Injectable()
export class WantedObserve {
  constructor(
    @Inject(VERSIONS) private readonly versions: VersionSource,
    @Inject(CONFIG_TEXTS) private readonly configs: ConfigTexts,
  ) {}

  async observe(spec: EndpointSpec, known: readonly DeploymentRow[]): Promise<WantedSight> {
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
    return selectVersions(spec.model, await this.versions.versionsOf(spec.model.project, spec.model.name));
  }

  private async resolve(
    spec: EndpointSpec,
    version: ServableVersion,
    known: readonly DeploymentRow[],
  ): Promise<WantedVersion> {
    const source = sourceDigest(spec, version);
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
      const files = await this.versions.filesOf(version.id);
      const layout = planLayout(files, spec.engine);
      const own = await this.ownConfig(spec, layout);
      const resolved = resolveDeployment(spec, { ...version, files }, layout, own);
      return { version: number, sourceDigest: source, fault: null, ...resolved };
    } catch (error) {
      if (!(error instanceof LayoutFault)) throw error;
      const digest = digestOf({ source, fault: error.message });
      const tritonModel = tritonModelName(spec.model.name, number, digest);
      return { version: number, digest, sourceDigest: source, tritonModel, body: null, fault: error.message };
    }
  }

  private async ownConfig({ engine }: EndpointSpec, layout: Layout): Promise<OwnConfig | null> {
    const text = engine.config ?? (layout.config ? await this.versions.textOf(layout.config) : null);
    if (text === null) return null;
    try {
      return { text, sight: this.configs.read(text, engine.config ? 'engine.config' : 'config.pbtxt of the version') };
    } catch (error) {
      if (error instanceof AppError && error.code === 'invalid') throw new LayoutFault(error.message);
      throw error;
    }
  }
}
