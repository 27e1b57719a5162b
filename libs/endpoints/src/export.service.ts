import { Inject, Injectable } from '@nestjs/common';
import {
  AppError,
  type DownloadUrl,
  type EndpointExport,
  type EndpointSpec,
  type ManifestFile,
} from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import type { EndpointRow } from './endpoint.store.ts';
import { unknownEndpoint } from './endpoint-change.service.ts';
import { EndpointsStore } from './endpoints.store.ts';
import { planExport } from './export.plan.ts';
import { LayoutFault } from './resolve/layout.plan.ts';
import { type Resolution, ResolutionSource } from './resolve/resolution.source.ts';
import type { Used } from './resolve/uses.plan.ts';
import { selectVersions } from './resolve/version.plan.ts';
import {
  CONFIG_TEXTS,
  type ConfigTexts,
  type ServableVersion,
  VERSIONS,
  type VersionSource,
} from './resolve/version.source.ts';

/** Of the module's own files among those that processing opens. */
const moduleFolder = 'module';

/** Tells what a Triton without Perch needs to serve one version of an endpoint. */
@Injectable()
export class ExportService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly resolution: ResolutionSource,
    @Inject(VERSIONS) private readonly versions: VersionSource,
    @Inject(CONFIG_TEXTS) private readonly configs: ConfigTexts,
  ) {}

  /**
   * `wanted` undefined: the newest version that serves, else the newest that the rule wants. `mayRead` throws for a
   * project whose bytes the caller may not have. Throws `not_found`, or `invalid` with the reason why it cannot be served.
   */
  async describe(
    name: string,
    wanted: number | undefined,
    mayRead: (project: string) => void,
  ): Promise<EndpointExport> {
    const row = await this.stores.endpoints.get(this.transactions.manager, name);
    if (!row?.spec) throw unknownEndpoint(name);
    const { spec } = row;
    if (spec.model.source)
      throw new AppError(
        'invalid',
        `endpoint ${name} is served from ${spec.model.source}: its files are its owner's, not in the registry`,
      );
    if (spec.model.none) throw noModel(name);
    const version = await this.pick(row, spec, wanted);
    const used = await this.resolution.usesOf(`${spec.model.project}/${spec.model.name}`, version);
    for (const project of [spec.model.project, ...projectsOf(used)]) mayRead(project);
    const resolved = await this.resolve(spec, version, used);
    const [variant] = resolved.body.variants;
    if (!variant) throw noModel(`${name}, version ${version.number}`);
    const folders = planExport(variant, resolved.origins, this.configs);
    const { processing, processingFiles } = resolved.body;
    const { module } = processing;
    const opened = [
      ...processingFiles,
      ...(module ? module.files.map(({ path, ...file }) => ({ ...file, path: `${moduleFolder}/${path}` })) : []),
    ];
    const urls = await this.urls([...folders.flatMap(({ files }) => files), ...opened]);
    const backends = [variant.model, ...variant.needs.map(({ model }) => model)]
      .map(({ engine }) => engine.backend)
      .filter((backend) => backend !== '' && backend !== 'ensemble');
    return {
      endpoint: name,
      project: spec.model.project,
      model: spec.model.name,
      version: version.number,
      models: folders.map((folder) => ({ ...folder, files: folder.files.map(urls) })),
      backends: [...new Set(backends)].sort(),
      gpu: variant.requires.gpu,
      processing: {
        ...(module ? { module: `${module.name}@${module.number}` } : { builtin: processing.builtin! }),
        files: opened.map(urls),
      },
    };
  }

  private async pick(row: EndpointRow, spec: EndpointSpec, wanted: number | undefined): Promise<ServableVersion> {
    const { project, name } = spec.model;
    const versions = await this.versions.versionsOf(project, name);
    const serving = [...row.status.servingVersions].sort((a, b) => b - a);
    const number = wanted ?? serving[0] ?? selectVersions(spec.model, versions)[0];
    if (number === undefined)
      throw new AppError('not_found', `endpoint ${row.name} serves no version and wants none; publish one first`);
    const version = versions.find((one) => one.number === number && one.state !== 'uploading');
    if (!version) throw new AppError('not_found', `version ${number} of model ${project}/${name} does not exist`);
    return version;
  }

  private async resolve(spec: EndpointSpec, version: ServableVersion, used: readonly Used[]): Promise<Resolution> {
    try {
      return await this.resolution.resolve(spec, version, used);
    } catch (error) {
      if (!(error instanceof LayoutFault)) throw error;
      throw new AppError('invalid', `endpoint ${spec.name}, version ${version.number}: ${error.message}`);
    }
  }

  private async urls(files: readonly ManifestFile[]): Promise<(file: ManifestFile) => DownloadUrl> {
    const found = await this.versions.urlsOf([...new Set(files.map(({ sha256 }) => sha256))]);
    return ({ path, sha256, size }) => {
      const url = found.get(sha256);
      if (!url) throw new AppError('unavailable', `${path} is not in the store now; try again`);
      return { path, sha256, size, url };
    };
  }
}

const noModel = (thing: string) =>
  new AppError('invalid', `endpoint ${thing}: it has no model to export, its processing module does all the work`);

const projectsOf = (used: readonly Used[]): string[] =>
  used.flatMap(({ use, uses }) => [use.model.slice(0, use.model.indexOf('/')), ...projectsOf(uses)]);
