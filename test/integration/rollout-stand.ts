import type { ArmEvidence, EndpointSpecInput, Route, WorkerEvidence } from '@perch/contracts';
import { EvidenceService, RolloutService } from '@perch/promotion';
import { type FakeAgent, type FakeRouter, FleetWorld, ruleSpec } from '../support/fleet.ts';

/** As fast as a policy may be, and no step without evidence. */
export const hasty = {
  ramp: 'steps' as const,
  dwellMs: 100,
  bakeMs: 100,
  slowGraceMs: 0,
  weightsPercent: [10, 50],
  slow: false as const,
};

export const progressive = (name: string, model: string, policy: object = {}): EndpointSpecInput =>
  ruleSpec(name, model, { traffic: { mode: 'progressive', policy: { ...hasty, ...policy } } });

const arm = (n: number, x: number): ArmEvidence => {
  const counts = { error: { n, x }, contract: { n, x: 0 } };
  return { ended: counts, closed: counts };
};

/** What routers tell of the rollout in a route: so many requests for both arms, and what went wrong with the candidate's. */
export const told = (route: Route, requests: number, errors: number): WorkerEvidence[] => {
  if (!route.rollout) return [];
  const { id, epoch } = route.rollout;
  const counts = { stable: arm(requests, 0), candidate: arm(requests, errors) };
  return [{ rollout: id, epoch, worker: 0, ...counts, fallbacks: errors, keyless: 0 }];
};

/** One server, one router, and rollouts that are fed by what the router is told to have counted. */
export class RolloutStand {
  readonly bad = new Set<number>();

  private constructor(
    readonly world: FleetWorld,
    readonly agent: FakeAgent,
    readonly router: FakeRouter,
  ) {}

  static async start(): Promise<RolloutStand> {
    const world = await FleetWorld.start();
    return new RolloutStand(world, await world.agent('s1'), await world.router('r1'));
  }

  async turn(name: string): Promise<void> {
    await this.world.settle();
    await this.agent.sync();
    await this.world.settle();
    await this.router.sync();
    const route = this.router.table?.endpoints[name];
    const version = route?.targets.find(({ deployment }) => deployment === route.rollout?.candidate)?.version;
    if (route?.rollout)
      await this.world
        .get(EvidenceService)
        .take(this.router.id, 'b1', told(route, 20_000, this.bad.has(version!) ? 400 : 0));
  }

  /** Lets everybody do what they do until `done`. */
  async until(name: string, done: () => Promise<boolean>, what: string): Promise<void> {
    const deadline = Date.now() + 15_000;
    for (;;) {
      await this.turn(name);
      if (await done()) return;
      if (Date.now() > deadline) throw new Error(`${name}: not ${what}: ${JSON.stringify(await this.rollouts(name))}`);
      await new Promise((next) => setTimeout(next, 10));
    }
  }

  /** `version state` of each rollout, oldest first. */
  async rollouts(name: string): Promise<string[]> {
    const rows = await this.world.get(RolloutService).list({ endpoint: name, limit: 50 });
    return rows.map(({ candidate, state }) => `${candidate.version} ${state}`).reverse();
  }

  async untilRollouts(name: string, wanted: readonly string[]): Promise<void> {
    const same = async () => (await this.rollouts(name)).join() === wanted.join();
    await this.until(name, same, wanted.join(', '));
  }

  close(): Promise<void> {
    return this.world.close();
  }
}
