import { Body, Controller, Get, HttpCode, Param, Patch, Post } from '@nestjs/common';
import {
  type Actor,
  type ChangeTags,
  type CreateVersion,
  type CreateVersionFromUrl,
  changeTags,
  createVersion,
  createVersionFromUrl,
  type DescribeVersion,
  describeVersion,
  downloadUrl,
  modelName,
  paged,
  plainUses,
  projectName,
  type VersionUses,
  version,
  versionNumber,
  versionUpload,
} from '@perch/contracts';
import { ProcessingSource } from '@perch/endpoints';
import { RegistryService } from '@perch/registry';
import { Allow, Answers, By, Idempotent, requireProject } from './http.ts';

const InProject = () => Param('project', { schema: projectName });
const OfModel = () => Param('name', { schema: modelName });
/** Whoever uses a model serves it: its project must be in the scopes of the key too. */
const requireUsed = (actor: Actor, uses: VersionUses | undefined): void => {
  for (const { model } of Object.values(plainUses(uses))) requireProject(actor, model.slice(0, model.indexOf('/')));
};
const Numbered = () => Param('number', { schema: versionNumber });

@Allow('publisher')
@Controller('api/v1/models/:project/:name/versions')
export class VersionController {
  constructor(
    private readonly registry: RegistryService,
    private readonly processing: ProcessingSource,
  ) {}

  @Get()
  @Allow('viewer')
  @Answers(paged(version), 'Versions of a model, newest first')
  async list(@InProject() project: string, @OfModel() name: string) {
    return { items: await this.registry.listVersions(project, name), nextCursor: null };
  }

  @Get(':number')
  @Allow('viewer')
  @Answers(version, 'One version with its files')
  get(@InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return this.registry.getVersion(project, name, number);
  }

  @Get(':number/files')
  @Allow('viewer')
  @Answers(paged(downloadUrl), 'Signed URLs of the files of a version')
  async files(@InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return { items: await this.registry.downloads(project, name, number), nextCursor: null };
  }

  @Post()
  @Idempotent()
  @Answers(versionUpload, 'Begin a version: says which bytes are to be sent, and where to')
  async create(
    @By() actor: Actor,
    @InProject() project: string,
    @OfModel() name: string,
    @Body({ schema: createVersion }) body: CreateVersion,
  ) {
    requireUsed(actor, body.uses);
    return this.registry.createVersion(actor, project, name, await this.settled(actor, `${project}/${name}`, body));
  }

  @Post('from-url')
  @Idempotent()
  @Answers(version, 'Register an object that lies elsewhere: fetched, hashed and stored; answers a draft')
  async createFromUrl(
    @By() actor: Actor,
    @InProject() project: string,
    @OfModel() name: string,
    @Body({ schema: createVersionFromUrl }) body: CreateVersionFromUrl,
  ) {
    requireUsed(actor, body.uses);
    return this.registry.createFromUrl(actor, project, name, await this.settled(actor, `${project}/${name}`, body));
  }

  @Post(':number/uploads')
  @HttpCode(200)
  @Answers(versionUpload, 'Go on with an upload: what is still to be sent, with fresh URLs')
  resume(@By() actor: Actor, @InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return this.registry.resumeUpload(actor, project, name, number);
  }

  @Post(':number/complete')
  @HttpCode(200)
  @Answers(version, 'Check what was sent; the version becomes a draft')
  complete(@By() actor: Actor, @InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return this.registry.completeVersion(actor, project, name, number);
  }

  @Post(':number/publish')
  @HttpCode(200)
  @Answers(version, 'Publish a draft')
  publish(@By() actor: Actor, @InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return this.registry.publish(actor, project, name, number);
  }

  @Post(':number/unpublish')
  @HttpCode(200)
  @Answers(version, 'Make a published version a draft again')
  unpublish(@By() actor: Actor, @InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return this.registry.unpublish(actor, project, name, number);
  }

  @Post(':number/archive')
  @HttpCode(200)
  @Answers(version, 'Archive a version')
  archive(@By() actor: Actor, @InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return this.registry.archive(actor, project, name, number);
  }

  @Post(':number/restore')
  @HttpCode(200)
  @Answers(version, 'Bring an archived version back as a draft')
  restore(@By() actor: Actor, @InProject() project: string, @OfModel() name: string, @Numbered() number: number) {
    return this.registry.restore(actor, project, name, number);
  }

  @Post(':number/tags')
  @HttpCode(200)
  @Answers(version, 'Add and remove tags')
  changeTags(
    @By() actor: Actor,
    @InProject() project: string,
    @OfModel() name: string,
    @Numbered() number: number,
    @Body({ schema: changeTags }) body: ChangeTags,
  ) {
    return this.registry.changeTags(actor, project, name, number, body);
  }

  @Patch(':number')
  @Answers(version, 'Change description, metadata and lineage')
  describe(
    @By() actor: Actor,
    @InProject() project: string,
    @OfModel() name: string,
    @Numbered() number: number,
    @Body({ schema: describeVersion }) body: DescribeVersion,
  ) {
    return this.registry.describe(actor, project, name, number, body);
  }

  /** What endpoints will run that follow this version: its module by number, where the caller may have it run. */
  private async settled<T extends Pick<CreateVersion, 'processing'>>(actor: Actor, model: string, body: T): Promise<T> {
    if (!body.processing) return body;
    const { processing } = await this.processing.settle(actor, `version of ${model}`, body.processing);
    return { ...body, processing };
  }
}
