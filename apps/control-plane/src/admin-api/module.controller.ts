import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import {
  type Actor,
  AppError,
  downloadUrl,
  type ListModules,
  listModules,
  moduleName,
  moduleUpload,
  paged,
  processingModule,
  type RegisterModule,
  registerModule,
  versionNumber,
} from '@perch/contracts';
import { ModuleUsersService } from '@perch/endpoints';
import { ModuleService } from '@perch/registry';
import { Allow, Answers, By, Idempotent, inScopes, pageOf, readTextCursor } from './http.ts';

const Named = () => Param('module', { schema: moduleName });
const Numbered = () => Param('number', { schema: versionNumber });

/** Modules lie in no project; a key with projects writes those whose first segment is one of them. */
function requireOwn(actor: Actor, name: string): void {
  const first = name.split('/', 1)[0] as string;
  if (!inScopes(actor.projects, first))
    throw new AppError(
      'forbidden',
      `key ${actor.name} is scoped to projects: its modules are named ${actor.projects[0]}/…, not ${name}`,
    );
}

@Allow('publisher')
@Controller('api/v1/modules')
export class ModuleController {
  constructor(
    private readonly modules: ModuleService,
    private readonly users: ModuleUsersService,
  ) {}

  @Get()
  @Allow('viewer')
  @Answers(paged(processingModule), 'The newest processing module of each name, by task and a part of the name')
  async list(@Query({ schema: listModules }) query: ListModules) {
    const rows = await this.modules.list({ ...query, limit: query.limit + 1 }, readTextCursor(query.cursor));
    return pageOf(rows, query.limit, ({ name }) => name);
  }

  @Get(':module')
  @Allow('viewer')
  @Answers(paged(processingModule), 'All modules of one name, newest first')
  async numbers(@Named() name: string) {
    return { items: await this.modules.numbersOf(name), nextCursor: null };
  }

  @Get(':module/:number')
  @Allow('viewer')
  @Answers(processingModule, 'One processing module with its files')
  get(@Named() name: string, @Numbered() number: number) {
    return this.modules.get(name, number);
  }

  @Get(':module/:number/files')
  @Allow('viewer')
  @Answers(paged(downloadUrl), 'Signed URLs of the files of a processing module')
  async files(@Named() name: string, @Numbered() number: number) {
    return { items: await this.modules.downloads(name, number), nextCursor: null };
  }

  @Post(':module/uploads')
  @HttpCode(200)
  @Answers(moduleUpload, 'Which bytes of a processing module are to be sent, and where to; asked again it goes on')
  upload(@By() actor: Actor, @Named() name: string, @Body({ schema: registerModule }) body: RegisterModule) {
    requireOwn(actor, name);
    return this.modules.upload(actor, name, body);
  }

  @Post(':module')
  @Idempotent()
  @Answers(processingModule, 'Register a processing module whose bytes were sent; the newest one when it is the same')
  register(@By() actor: Actor, @Named() name: string, @Body({ schema: registerModule }) body: RegisterModule) {
    requireOwn(actor, name);
    return this.modules.register(actor, name, body);
  }

  @Delete(':module/:number')
  @HttpCode(204)
  @Answers(null, 'Delete a processing module; its number is never given again; 409 names who uses it')
  async remove(@By() actor: Actor, @Named() name: string, @Numbered() number: number): Promise<void> {
    requireOwn(actor, name);
    await this.modules.remove(actor, name, number, (tx, module) => this.users.usersOf(tx, module));
  }
}
