import { type Decision, endpointSpec, isOver, policyOf, type RolloutVerb } from '@perch/contracts';
import { noForce, type TrafficDeployment, type TrafficSight } from '@perch/endpoints';
import type { RolloutEvidence } from './evidence/evidence.entity.ts';
import type { NewRolloutEvent, RolloutRecord } from './rollout.entity.ts';
import { isQuiet, planRollout } from './rollout.plan.ts';
import type { RolloutPlan, RolloutWorld } from './rollout-move.plan.ts';
import { type HandStart, startByHand } from './rollout-start.plan.ts';
import { planCommand } from './rollout-verb.plan.ts';

export const noEvidence: RolloutEvidence = {
  unit: 'request',
  metrics: [],
  candidateEvents: 0,
  pairs: null,
  fallbacks: 0,
  keyless: 0,
  requests: { stable: 0, candidate: 0 },
  requestsPerMinuteNow: 0,
  sinceEvidenceMs: null,
  feedback: [],
  holds: [],
};

export const decided = (next: Decision['next'], more: Partial<Decision> = {}): Decision => ({
  verdict: next === 'stay' ? 'insufficient' : next === 'roll_back' ? 'roll_back' : 'advance',
  share: 0.05,
  next,
  reasons: [`evidence says ${next}`],
  e: 1,
  threshold: 20,
  readings: [],
  nextStepInMs: null,
  ...more,
});

export const specOf = (more: { mode?: string; policy?: object; header?: string; stopped?: boolean } = {}) =>
  endpointSpec.parse({
    name: 'text/a',
    model: { project: 'nlp', name: 'a' },
    stopped: more.stopped ?? false,
    traffic: {
      mode: more.mode ?? 'progressive',
      ...(more.policy ? { policy: more.policy } : {}),
      ...(more.header ? { sticky: { header: more.header } } : {}),
    },
  });

export const deployed = (version: number, more: Partial<TrafficDeployment> = {}): TrafficDeployment => ({
  id: `id${version}`,
  version,
  digest: `d${version}`,
  state: 'ready',
  reason: null,
  since: new Date(0),
  signature: null,
  ...more,
});

/** The rows and the endpoint as plain values: plans are applied as the real ones are, without a database. */
export class RolloutSandbox {
  sight: TrafficSight = {
    endpoint: 'text/a',
    exists: true,
    generation: 1,
    spec: specOf(),
    wish: { newest: { version: 1, digest: 'd1' } },
    force: { ...noForce, stable: 'd1' },
    deployments: [deployed(1)],
    quarantine: [],
  };
  readonly rollouts: RolloutRecord[] = [];
  readonly events: NewRolloutEvent[] = [];
  now = new Date('2026-01-01T00:00:00Z');
  evidence = noEvidence;
  decision: Decision = decided('stay');
  private ids = 0;

  get active(): RolloutRecord | null {
    return this.rollouts.find(({ endedAt }) => endedAt === null) ?? null;
  }
  /** The newest one. */
  get rollout(): RolloutRecord {
    return this.rollouts.at(-1)!;
  }

  world(): RolloutWorld {
    const { sight, active, now } = this;
    const ended = this.rollouts.filter(({ endedAt }) => endedAt !== null);
    return {
      sight,
      active,
      last: ended.sort((a, b) => a.endedAt!.getTime() - b.endedAt!.getTime()).at(-1) ?? null,
      kept: ended.findLast(({ keepUntil }) => keepUntil !== null && keepUntil > now) ?? null,
      evidence: active && ['shadowing', 'shifting', 'baking'].includes(active.state) ? this.evidence : null,
      baseline: { r0: { error: 1 }, slowMs: 200, requestsPerMinute: 600 },
      feedbackKey: null,
      now,
    };
  }

  readonly newId = () => `r${++this.ids}`;

  plan(): RolloutPlan {
    return planRollout(this.world(), { decide: () => this.decision, newId: this.newId });
  }

  /** One step of the loop. True: it changed something. */
  step(): boolean {
    const world = this.world();
    const plan = this.plan();
    if (isQuiet(plan, world)) return false;
    this.apply(plan);
    return true;
  }

  /** Until nothing changes but the counts. */
  settle(): this {
    for (let turn = 0; turn < 20; turn += 1) {
      const before = this.events.length;
      if (!this.step() || (this.events.length === before && this.plan().wakeInMs !== 0)) return this;
    }
    throw new Error('does not settle');
  }

  say(verb: RolloutVerb, reason = '', rollout = this.rollout): boolean {
    const plan = planCommand(this.world(), rollout, { verb, actor: 'ada', reason });
    if (plan) this.apply(plan);
    return plan !== null;
  }

  start(hand: Partial<HandStart> = {}): void {
    const policy = policyOf(this.sight.spec?.traffic.policy);
    const usual = { wish: null, policy, allowBreaking: false, actor: 'ada', reason: '' };
    this.apply(startByHand(this.world(), { ...usual, ...hand }, this.newId));
  }

  /** The registry has a version, the endpoint's pass has deployed it. */
  publish(version: number, more: Partial<TrafficDeployment> = {}): void {
    const deployment = deployed(version, more);
    const { deployments, quarantine } = this.sight;
    const wish = quarantine.includes(deployment.digest) ? this.sight.wish : { newest: deployment };
    this.sight = { ...this.sight, wish: { newest: { ...wish.newest! } }, deployments: [deployment, ...deployments] };
  }

  set(digest: string, more: Partial<TrafficDeployment>): void {
    const deployments = this.sight.deployments.map((one) => (one.digest === digest ? { ...one, ...more } : one));
    this.sight = { ...this.sight, deployments };
  }

  after(ms: number): this {
    this.now = new Date(this.now.getTime() + ms);
    return this;
  }

  private apply({ rollout, force, quarantine, events }: RolloutPlan): void {
    if (rollout) {
      const at = this.rollouts.findIndex(({ id }) => id === rollout.id);
      const written = { ...rollout, rowVersion: rollout.rowVersion + 1 };
      if (at < 0) this.rollouts.push(written);
      else this.rollouts[at] = written;
    }
    const refused = quarantine ? [...this.sight.quarantine, quarantine.digest] : this.sight.quarantine;
    // As the endpoint's pass does: the newest that is not refused.
    const newest = this.sight.deployments
      .filter(({ digest }) => !refused.includes(digest))
      .sort((a, b) => b.version - a.version)[0];
    const wish = quarantine
      ? { newest: newest ? { version: newest.version, digest: newest.digest } : null }
      : this.sight.wish;
    this.sight = { ...this.sight, force, quarantine: refused, wish };
    this.events.push(...events);
  }

  get types(): string[] {
    return this.events.map(({ type }) => type);
  }
  get isOver(): boolean {
    return isOver(this.rollout.state);
  }
}
