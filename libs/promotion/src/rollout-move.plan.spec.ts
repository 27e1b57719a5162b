import { isOver, rolloutVerbs } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mostShare } from './rollout-judge.plan.ts';
import { decided, RolloutSandbox, specOf } from './rollout-world.fake.ts';

const policy = { weightsPercent: [2, 10, 40], mostRestarts: 1 };

/** Whatever may happen to an endpoint between two looks. */
const happening = fc.oneof(
  fc.constantFrom(
    'publish',
    'publish a slow one',
    'publish a bad one',
    'ready',
    'broken',
    'stable away',
    'stable back',
  ),
  fc.constantFrom('stop', 'start', 'newest', 'progressive', 'resume the rule', 'unpublish', 'hour', 'minute'),
  fc.constantFrom('stay', 'shift', 'drop', 'bake', 'promote', 'roll_back', 'hold', 'abort'),
  fc.constantFrom(...rolloutVerbs),
  fc.constantFrom('by hand'),
);

function happen(box: RolloutSandbox, what: string): void {
  const { sight } = box;
  const newest = Math.max(...sight.deployments.map(({ version }) => version));
  const current = sight.force.candidate ?? `d${newest}`;
  if (what === 'publish') box.publish(newest + 1);
  else if (what === 'publish a slow one') box.publish(newest + 1, { state: 'loading' });
  else if (what === 'publish a bad one') box.publish(newest + 1, { state: 'failed', reason: 'bad bytes' });
  else if (what === 'ready') box.set(current, { state: 'ready' });
  else if (what === 'broken') box.set(current, { state: 'failed', reason: 'crashed' });
  else if (what === 'stable away') box.set(sight.force.stable ?? '', { state: 'loading' });
  else if (what === 'stable back') box.set(sight.force.stable ?? '', { state: 'ready' });
  else if (what === 'stop') sight.spec = specOf({ policy, stopped: true });
  else if (what === 'start' || what === 'progressive') sight.spec = specOf({ policy });
  else if (what === 'newest') sight.spec = specOf({ mode: 'newest' });
  else if (what === 'resume the rule') sight.force = { ...sight.force, held: null };
  else if (what === 'unpublish') sight.wish = { newest: null };
  else if (what === 'hour') box.after(3_700_000);
  else if (what === 'minute') box.after(61_000);
  else if (what === 'drop') box.decision = decided('shift', { share: 0.02 });
  else if (what === 'shift') box.decision = decided('shift', { share: [0.1, 0.4, 0.9][newest % 3]! });
  else if (
    ['stay', 'bake', 'promote', 'roll_back', 'hold', 'abort'].includes(what) &&
    !rolloutVerbs.includes(what as never)
  )
    box.decision = decided(what as 'stay');
  else orRefused(() => (what === 'by hand' ? box.start() : box.say(what as 'pause')));
  // As the endpoint's pass does where nothing is stable.
  if (sight.spec?.traffic.mode === 'progressive' && box.sight.force.stable === null)
    box.sight.force = { ...box.sight.force, stable: 'd1' };
}

/** What speaks against a verb is said with a code, never with another error. */
function orRefused(steps: () => unknown): void {
  try {
    steps();
  } catch (error) {
    expect((error as { code?: string }).code).toMatch(/^(conflict|invalid|not_found)$/);
  }
}

const sightOf = ({ sight, rollouts, events }: RolloutSandbox) =>
  JSON.stringify([
    sight.force,
    rollouts.map(({ state, run, epoch, rowVersion }) => [state, run, epoch, rowVersion]),
    events.length,
  ]);

describe('whatever happens in whatever order', () => {
  it('there is one rollout at a time, one stable, never more weight than allowed, and what is over stays over', () => {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 40 }), (story) => {
        const box = new RolloutSandbox();
        box.sight.spec = specOf({ policy });
        const over = new Map<string, string>();
        for (const what of story) {
          if (!box.rollouts.length && (rolloutVerbs as readonly string[]).includes(what) && what !== 'promote')
            continue;
          if (!box.rollouts.length && rolloutVerbs.includes(what as never)) continue;
          happen(box, what);
          for (let turn = 0; turn < 8; turn += 1) {
            box.step();
            invariants(box, over, what);
          }
          // A look at what nothing happened to changes nothing, however often it is repeated.
          const before = sightOf(box);
          box.step();
          expect(sightOf(box)).toBe(before);
        }
      }),
      { numRuns: 200 },
    );
  });

  function invariants({ rollouts, active, sight }: RolloutSandbox, over: Map<string, string>, what: string): void {
    const { force } = sight;
    expect(rollouts.filter(({ endedAt }) => endedAt === null).length).toBeLessThanOrEqual(1);
    for (const { id, state, endedAt } of rollouts) {
      expect(isOver(state)).toBe(endedAt !== null);
      const before = over.get(id);
      if (before !== undefined && before !== state)
        expect([before, state, what]).toEqual(['promoted', 'rolled_back', 'rollback']);
      if (isOver(state)) over.set(id, state);
    }
    if (!active) expect(force).toMatchObject({ candidate: null, share: 0, rollout: null, shadowing: false });
    else {
      expect(force.stable).toBe(active.stable.digest);
      expect(force.candidate).not.toBe(force.stable);
      expect(force.share).toBeLessThanOrEqual(active.state === 'baking' ? 0.99 : mostShare(active.policy));
      if (['pending', 'verifying', 'shadowing'].includes(active.state)) expect(force.share).toBe(0);
      expect(active.epochs.map(({ epoch }) => epoch)).toEqual(
        [...new Set(active.epochs.map(({ epoch }) => epoch))].sort((a, b) => a - b),
      );
      expect(force.rollout?.epoch ?? active.epoch).toBe(active.epoch);
    }
    expect(sight.quarantine).not.toContain(force.candidate);
    expect(force.keep.length).toBeLessThanOrEqual(1);
    expect(force.keep).not.toContain(force.stable);
  }
});
