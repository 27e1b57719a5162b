import { Controller, Get, HttpCode, Param, Post } from '@nestjs/common';
import { type Actor, installationStatus, paged, router, server } from '@perch/contracts';
import { Installation, RouterService, ServerService } from '@perch/fleet';
import { programVersion } from '../program-version.ts';
import { Allow, Answers, By } from './http.ts';

@Allow('operator')
@Controller('api/v1')
export class FleetController {
  constructor(
    private readonly servers: ServerService,
    private readonly routers: RouterService,
    private readonly installation: Installation,
  ) {}

  @Get('servers')
  @Allow('viewer')
  @Answers(paged(server), 'Servers with what they reported last')
  async listServers() {
    return { items: await this.servers.list(), nextCursor: null };
  }

  @Get('routers')
  @Allow('viewer')
  @Answers(paged(router), 'Routers with the table they follow')
  async listRouters() {
    return { items: await this.routers.list(), nextCursor: null };
  }

  @Post('routers/:id/forget')
  @HttpCode(204)
  @Answers(null, 'No unload waits for this router any more')
  forget(@By() actor: Actor, @Param('id') id: string) {
    return this.routers.forget(actor, id);
  }

  @Post('fleet/confirm')
  @HttpCode(200)
  @Answers(installationStatus, 'After a restore: the database as it stands is the truth, removals are meant')
  async confirm(@By() actor: Actor) {
    const { lineage, confirmed } = await this.installation.confirm(actor);
    return { version: programVersion, lineage, confirmed };
  }
}
