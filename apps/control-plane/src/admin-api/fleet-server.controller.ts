import { Body, Controller, Get, HttpCode, Param, Post } from '@nestjs/common';
import {
  type Actor,
  type DrainServer,
  drainServer,
  paged,
  pool,
  serverDetail,
  type UndrainServer,
  undrainServer,
} from '@perch/contracts';
import { DrainService, FleetViewService } from '@perch/fleet';
import { Allow, Answers, By } from './http.ts';

/** One server, by its id or its name. */
@Allow('operator')
@Controller('api/v1')
export class FleetServerController {
  constructor(
    private readonly view: FleetViewService,
    private readonly draining: DrainService,
  ) {}

  @Get('pools')
  @Allow('viewer')
  @Answers(paged(pool), 'Pools with their servers, their models and their room')
  async pools() {
    return { items: await this.view.pools(), nextCursor: null };
  }

  @Get('servers/:server')
  @Allow('viewer')
  @Answers(serverDetail, 'One server: each model as it should be and as it is, with what is waited for')
  show(@Param('server') key: string) {
    return this.view.show(key);
  }

  @Post('servers/:server/drain')
  @HttpCode(200)
  @Answers(
    serverDetail,
    'Take a server out of service: what it serves is ready elsewhere before it goes, unless forced',
  )
  async drain(@By() actor: Actor, @Param('server') key: string, @Body({ schema: drainServer }) body: DrainServer) {
    return this.view.show(await this.draining.drain(actor, key, body));
  }

  @Post('servers/:server/undrain')
  @HttpCode(200)
  @Answers(serverDetail, 'Back in service')
  async undrain(
    @By() actor: Actor,
    @Param('server') key: string,
    @Body({ schema: undrainServer }) body: UndrainServer,
  ) {
    return this.view.show(await this.draining.undrain(actor, key, body.reason));
  }
}
