import { Controller, Inject, Post, Req, Res } from '@nestjs/common';
import { LOGGER, type Logger } from '@perch/platform';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { type DrainOutcome, DrainService } from './drain.service.ts';

/** `::ffff:` stands before an IPv4 address on a socket of both kinds. */
const isLoopback = (address: string | undefined) =>
  address !== undefined && /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/.test(address);

/** For a pod's preStop hook: whoever can reach this machine's loopback may end the agent anyway. */
@Controller('drain')
export class DrainController {
  constructor(
    @Inject(CONFIG) private readonly config: AgentConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly service: DrainService,
  ) {}

  /** Answers when the server is drained, or after PERCH_DRAIN_TIMEOUT_MS. */
  @Post()
  async drain(
    @Req() request: { socket: { remoteAddress?: string } },
    @Res({ passthrough: true }) reply: { code(status: number): unknown },
  ): Promise<DrainOutcome | { error: string }> {
    if (!isLoopback(request.socket.remoteAddress)) {
      reply.code(403);
      return { error: 'a drain is asked for on the same machine: run "agent drain" in the agent’s container' };
    }
    reply.code(200);
    const limitMs = this.config.PERCH_DRAIN_TIMEOUT_MS;
    this.logger.info('drain asked for', { limitMs });
    return this.service.drain(limitMs, 'its agent was told to drain');
  }
}
