import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import {
  type Actor,
  type CommandRollout,
  commandRollout,
  endpointName,
  explanation,
  paged,
  type RolloutVerb,
  rollout,
  rolloutEvent,
  rolloutSimulation,
  rolloutVerb,
  type SimulateRollout,
  type StartRollout,
  simulateRollout,
  startRollout,
} from '@perch/contracts';
import { RolloutService, SimulationService } from '@perch/promotion';
import { z } from 'zod';
import {
  Allow,
  Answers,
  By,
  Idempotent,
  inScopes,
  pageOf,
  pageQuery,
  readNumberCursor,
  readTextCursor,
  requireEndpoint,
} from './http.ts';

const Id = () => Param('id', { schema: z.uuid() });
const Named = () => Param('endpoint', { schema: endpointName });

const listQuery = pageQuery.extend({
  endpoint: endpointName.optional(),
  /** `true`: those that go on; `false`: those that are over; left out: both. */
  active: z.enum(['true', 'false']).optional(),
});
/** `after`: id of the last event that was seen. */
const eventQuery = pageQuery.extend({ after: z.coerce.number().int().min(0).default(0) });
const startQuery = z.object({ dryRun: z.enum(['true', 'false']).default('false') });
const explainQuery = z.object({ event: z.coerce.number().int().min(1).optional() });

/** Rollouts: whoever may read may look, operators command. A rollout lies in the scopes of a key when its endpoint does. */
@Allow('operator')
@Controller('api/v1')
export class RolloutController {
  constructor(
    private readonly rollouts: RolloutService,
    private readonly simulations: SimulationService,
  ) {}

  @Get('rollouts')
  @Allow('viewer')
  @Answers(paged(rollout), 'Rollouts, newest first')
  async list(@By() actor: Actor, @Query({ schema: listQuery }) query: z.output<typeof listQuery>) {
    const { cursor, limit, endpoint } = query;
    const active = query.active === undefined ? undefined : query.active === 'true';
    const rows = await this.rollouts.list({ endpoint, active, after: readTextCursor(cursor), limit: limit + 1 });
    const page = pageOf(rows, limit, ({ id }) => id);
    return { ...page, items: page.items.filter((one) => inScopes(actor.endpoints, one.endpoint)) };
  }

  @Get('rollouts/:id')
  @Allow('viewer')
  @Answers(rollout, 'One rollout, with its last decision')
  get(@By() actor: Actor, @Id() id: string) {
    return this.visible(actor, id);
  }

  @Get('rollouts/:id/events')
  @Allow('viewer')
  @Answers(paged(rolloutEvent), 'What happened to it, oldest first, above event `after`')
  async events(
    @By() actor: Actor,
    @Id() id: string,
    @Query({ schema: eventQuery }) { cursor, after, limit }: z.output<typeof eventQuery>,
  ) {
    await this.visible(actor, id);
    const rows = await this.rollouts.events(id, readNumberCursor(cursor) ?? after, limit + 1);
    return pageOf(rows, limit, (event) => event.id);
  }

  @Get('rollouts/:id/explain')
  @Allow('viewer')
  @Answers(explanation, 'A decision (the last decisive one, or that of `event`) computed again from what it looked at')
  async explain(
    @By() actor: Actor,
    @Id() id: string,
    @Query({ schema: explainQuery }) { event }: z.output<typeof explainQuery>,
  ) {
    await this.visible(actor, id);
    return this.rollouts.explain(id, event);
  }

  @Post('endpoints/:endpoint/rollout')
  @Idempotent()
  @Answers(rollout, 'Start a rollout by hand; 409 while another one goes on. With dryRun only say what would start')
  start(
    @By() actor: Actor,
    @Named() endpoint: string,
    @Body({ schema: startRollout }) body: StartRollout,
    @Query({ schema: startQuery }) { dryRun }: z.output<typeof startQuery>,
  ) {
    return this.rollouts.start(actor, endpoint, body, { dryRun: dryRun === 'true' });
  }

  @Post('endpoints/:endpoint/rollout/simulate')
  @HttpCode(200)
  @Allow('publisher')
  @Answers(rolloutSimulation, 'What a policy would do at the rates of this endpoint; nothing is started')
  simulate(@Named() endpoint: string, @Body({ schema: simulateRollout }) body: SimulateRollout) {
    return this.simulations.simulate(endpoint, body);
  }

  @Post('rollouts/:id/:verb')
  @HttpCode(200)
  @Answers(rollout, 'Pause, resume, advance, promote, abort it, or roll it back; the same twice is harmless')
  async command(
    @By() actor: Actor,
    @Id() id: string,
    @Param('verb', { schema: rolloutVerb }) verb: RolloutVerb,
    @Body({ schema: commandRollout }) { reason }: CommandRollout,
  ) {
    await this.visible(actor, id);
    return this.rollouts.command(actor, id, verb, reason);
  }

  private async visible(actor: Actor, id: string) {
    const found = await this.rollouts.get(id);
    requireEndpoint(actor, found.endpoint);
    return found;
  }
}
