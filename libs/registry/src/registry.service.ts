import { Injectable } from '@nestjs/common';
import type {
  Actor,
  ChangeTags,
  CreateVersion,
  CreateVersionFromUrl,
  DescribeVersion,
  DownloadUrl,
  ListModels,
  ManifestFile,
  Model,
  Page,
  Version,
  VersionUpload,
} from '@perch/contracts';
import { BlobService, type BlobUrl } from './blob.service.ts';
import { CompleteService } from './complete.service.ts';
import { ImportService } from './import.service.ts';
import { UploadService } from './upload.service.ts';
import { VersionService } from './version.service.ts';

const downloadLifeMs = 15 * 60_000;

/**
 * The registry as others see it. Every change is written with its actor to the change log and wakes the work `model`
 * of `<project>/<name>`, in the same transaction. A version that does not exist is `not_found`, a verb that does not
 * fit its state `invalid`; doing the same twice is harmless.
 */
@Injectable()
export class RegistryService {
  constructor(
    private readonly uploads: UploadService,
    private readonly completing: CompleteService,
    private readonly versions: VersionService,
    private readonly blobs: BlobService,
    private readonly imports: ImportService,
  ) {}

  /**
   * Begins a version and says what to send. The same bytes again go on with the version that is uploading, a draft never
   * published, or the newest; other bytes get the next number. `invalid` names the path or field at fault.
   */
  createVersion(actor: Actor, project: string, name: string, wish: CreateVersion): Promise<VersionUpload> {
    return this.uploads.create(actor, project, name, wish);
  }

  /** Fetches an object from elsewhere and makes a draft of it. */
  createFromUrl(actor: Actor, project: string, name: string, wish: CreateVersionFromUrl): Promise<Version> {
    return this.imports.create(actor, project, name, wish);
  }

  /** What is still to be sent, with fresh URLs; parts and files that arrived are left out. */
  resumeUpload(_actor: Actor, project: string, name: string, number: number): Promise<VersionUpload> {
    return this.uploads.resume(project, name, number);
  }

  /** All bytes there and proven: the version is a draft. Else `invalid` or `integrity` naming the files, and no change. */
  completeVersion(actor: Actor, project: string, name: string, number: number): Promise<Version> {
    return this.completing.complete(actor, project, name, number);
  }

  publish(actor: Actor, project: string, name: string, number: number): Promise<Version> {
    return this.versions.move(actor, project, name, number, 'publish');
  }
  unpublish(actor: Actor, project: string, name: string, number: number): Promise<Version> {
    return this.versions.move(actor, project, name, number, 'unpublish');
  }
  archive(actor: Actor, project: string, name: string, number: number): Promise<Version> {
    return this.versions.move(actor, project, name, number, 'archive');
  }
  restore(actor: Actor, project: string, name: string, number: number): Promise<Version> {
    return this.versions.move(actor, project, name, number, 'restore');
  }

  changeTags(actor: Actor, project: string, name: string, number: number, wish: ChangeTags): Promise<Version> {
    return this.versions.changeTags(actor, project, name, number, wish);
  }
  /** Absent fields stay; `metadata` and `lineage` are replaced whole. */
  describe(actor: Actor, project: string, name: string, number: number, wish: DescribeVersion): Promise<Version> {
    return this.versions.describe(actor, project, name, number, wish);
  }

  /** Models in order of their names, those in the actor's projects; tags and metadata must all be on one version. */
  listModels(actor: Actor, wanted: ListModels): Promise<Page<Model>> {
    return this.versions.search(actor, wanted);
  }
  getModel(project: string, name: string): Promise<Model> {
    return this.versions.model(project, name);
  }
  /** With its files. */
  getVersion(project: string, name: string, number: number): Promise<Version> {
    return this.versions.get(project, name, number);
  }
  /** Newest first, in every state; without files. A model that does not exist has none. */
  listVersions(project: string, name: string): Promise<Version[]> {
    return this.versions.list(project, name);
  }
  /** Models (`project/name`) of which a draft or published version uses the given one. */
  modelsUsing(model: string): Promise<string[]> {
    return this.versions.modelsUsing(model);
  }
  /** The manifest of a version by its id, in order of paths. */
  filesOf(versionId: string): Promise<ManifestFile[]> {
    return this.versions.filesOf(versionId);
  }

  /** Signed GETs (15 min) of the files of a complete version. */
  downloads(project: string, name: string, number: number): Promise<DownloadUrl[]> {
    return this.versions.downloads(project, name, number, new Date(Date.now() + downloadLifeMs));
  }
  /** Signed GETs of verified blobs by hash; unknown hashes are left out. For agents and routers only. */
  blobUrls(hashes: readonly string[], lifeMs = downloadLifeMs): Promise<BlobUrl[]> {
    return this.blobs.urls(hashes, new Date(Date.now() + lifeMs));
  }
}
