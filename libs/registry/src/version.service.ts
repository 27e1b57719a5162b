import { Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type ChangeTags,
  type DescribeVersion,
  type DownloadUrl,
  type ListModels,
  type ManifestFile,
  type Model,
  type Page,
  type Version,
} from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { BlobService } from './blob.service.ts';
import { ModelStore } from './model.store.ts';
import { decideState, type VersionVerb } from './version.decide.ts';
import type { VersionEntity } from './version.entity.ts';
import { describingChange, listOf, metadataFilter, tagsChange } from './version.plan.ts';
import { nameOf, toFile, toVersion, type VersionChange, VersionStore } from './version.store.ts';
import { VersionChangeService } from './version-change.service.ts';

/** Reads models and versions, and changes what may change of a version: its state, tags and words. */
@Injectable()
export class VersionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly models: ModelStore,
    private readonly versions: VersionStore,
    private readonly blobs: BlobService,
    private readonly changes: VersionChangeService,
  ) {}

  async search(actor: Actor, wanted: ListModels): Promise<Page<Model>> {
    const rows = await this.models.search(this.transactions.manager, {
      project: wanted.project,
      name: wanted.name,
      tags: listOf(wanted.tag),
      metadata: metadataFilter(listOf(wanted.metadata)),
      projects: actor.projects.length > 0 ? actor.projects : undefined,
      after: readCursor(wanted.cursor),
      limit: wanted.limit + 1,
    });
    const items = rows.slice(0, wanted.limit);
    const last = items.at(-1);
    return { items, nextCursor: last && rows.length > wanted.limit ? writeCursor(last) : null };
  }

  async model(project: string, name: string): Promise<Model> {
    const found = await this.models.find(this.transactions.manager, project, name);
    if (!found) throw new AppError('not_found', `model ${project}/${name} does not exist`);
    return found;
  }

  async get(project: string, name: string, number: number): Promise<Version> {
    const version = await this.versions.get(this.transactions.manager, project, name, number);
    return toVersion(version, await this.versions.files(this.transactions.manager, version.id));
  }

  async list(project: string, name: string): Promise<Version[]> {
    const found = await this.versions.list(this.transactions.manager, project, name);
    return found.map((version) => toVersion(version));
  }

  async modelsUsing(model: string): Promise<string[]> {
    return this.versions.modelsUsing(this.transactions.manager, model);
  }

  async filesOf(versionId: string): Promise<ManifestFile[]> {
    return (await this.versions.files(this.transactions.manager, versionId)).map(toFile);
  }

  async downloads(project: string, name: string, number: number, expiresAt: Date): Promise<DownloadUrl[]> {
    const version = await this.versions.get(this.transactions.manager, project, name, number);
    if (version.state === 'uploading')
      throw new AppError('invalid', `${nameOf(version)} is still uploading; complete its upload first`);
    const files = await this.versions.files(this.transactions.manager, version.id);
    const urls = new Map((await this.blobs.urlsOf(version.id, expiresAt)).map(({ sha256, url }) => [sha256, url]));
    return files.map((file) => ({ ...toFile(file), url: urls.get(file.sha256) as string }));
  }

  move(actor: Actor, project: string, name: string, number: number, verb: VersionVerb): Promise<Version> {
    return this.change(project, name, number, async (tx, version) => {
      const state = decideState(version.state, verb, nameOf(version));
      if (state === version.state) return {};
      await this.changes.record(tx, actor, `version.${verb}`, version, { from: version.state, to: state });
      return { state, ...(state === 'published' ? { publishedAt: new Date() } : {}) };
    });
  }

  changeTags(actor: Actor, project: string, name: string, number: number, wish: ChangeTags): Promise<Version> {
    return this.change(project, name, number, async (tx, version) => {
      const tags = tagsChange(version.tags, wish, nameOf(version));
      if (!tags) return {};
      await this.changes.record(tx, actor, 'version.tag', version, { from: version.tags, to: tags });
      return { tags };
    });
  }

  describe(actor: Actor, project: string, name: string, number: number, wish: DescribeVersion): Promise<Version> {
    return this.change(project, name, number, async (tx, version) => {
      const change = describingChange(version, wish);
      if (Object.keys(change).length > 0) await this.changes.record(tx, actor, 'version.describe', version, change);
      return change;
    });
  }

  private async change(
    project: string,
    name: string,
    number: number,
    decide: (tx: Tx, version: VersionEntity) => Promise<VersionChange>,
  ): Promise<Version> {
    return this.transactions.run(async (tx) => {
      const version = await this.versions.lock(tx, project, name, number);
      const change = await decide(tx, version);
      await this.versions.change(tx, version.id, change);
      return toVersion(Object.assign(version, change), await this.versions.files(tx, version.id));
    });
  }
}

const writeCursor = ({ project, name }: Model): string =>
  Buffer.from(JSON.stringify([project, name])).toString('base64url');

function readCursor(cursor: string | undefined): { project: string; name: string } | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [project, name] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    if (typeof project === 'string' && typeof name === 'string') return { project, name };
  } catch {
    // said below
  }
  throw new AppError('invalid', 'cursor: not one that this server gave; start again without it');
}
