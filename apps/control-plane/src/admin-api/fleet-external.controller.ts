import { Body, Controller, Delete, HttpCode, Param, Post, Query } from '@nestjs/common';
import { type Actor, type RegisterServer, registerServer, serverDetail } from '@perch/contracts';
import { ExternalService, FleetViewService } from '@perch/fleet';
import { z } from 'zod';
import { Allow, Answers, By } from './http.ts';

const removal = z.object({ force: z.enum(['true', 'false']).default('false') });

/** Tritons without an agent: what the control plane calls is named by operators, and their secrets are kept. */
@Allow('operator')
@Controller('api/v1/servers')
export class FleetExternalController {
  constructor(
    private readonly external: ExternalService,
    private readonly view: FleetViewService,
  ) {}

  @Post()
  @HttpCode(200)
  @Answers(serverDetail, 'Register a Triton without an agent, or give one another address or other headers')
  async register(@By() actor: Actor, @Body({ schema: registerServer }) body: RegisterServer) {
    return this.view.show(await this.external.register(actor, body));
  }

  @Delete(':server')
  @HttpCode(204)
  @Answers(null, 'Forget a Triton without an agent; 409 while it is in use')
  unregister(
    @By() actor: Actor,
    @Param('server') key: string,
    @Query({ schema: removal }) { force }: z.output<typeof removal>,
  ) {
    return this.external.unregister(actor, key, force === 'true');
  }
}
