import { isOver, rolloutVerbs } from '@perch/contracts';
import type { TrafficForce } from '@perch/endpoints';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RolloutRecord } from './rollout.entity.ts';
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

describe('whatever happens in whatever order', () => {
  it('there is one rollout at a time, one stable, never more weight than allowed, and what is over stays over', () => {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 40 }), (story) => {
        const box = new RolloutSandbox();
        box.sight.spec = specOf({ policy });
        const over = new Map<string, string>();
        for (const what of story) {
          if (box.rollouts.length === 0 && rolloutVerbs.includes(what as never)) continue;
          happen(box, what);
          expect(faults(box, over, what)).toEqual([]);
          for (let turn = 0; turn < 60 && box.step(); turn += 1) expect(faults(box, over, what)).toEqual([]);
          // A look at what nothing happened to writes nothing, however often it is repeated.
          expect(box.step()).toBe(false);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

/** What must never be, by name; [] when all is well. */
function faults(box: RolloutSandbox, over: Map<string, string>, what: string): string[] {
  const { rollouts, active, sight } = box;
  const { force } = sight;
  const found: [string, boolean][] = [
    ['two at a time', rollouts.filter(({ endedAt }) => endedAt === null).length > 1],
    ['refused and on trial', sight.quarantine.includes(force.candidate ?? '')],
    ['two old versions kept', force.keep.length > 1],
    ['stable is kept', force.keep.includes(force.stable ?? '')],
  ];
  for (const { id, state, endedAt } of rollouts) {
    found.push(['over without an end', isOver(state) !== (endedAt !== null)]);
    const before = over.get(id);
    const back = before === 'promoted' && state === 'rolled_back' && what === 'rollback';
    found.push([`was ${before}, is ${state}`, before !== undefined && before !== state && !back]);
    if (isOver(state)) over.set(id, state);
  }
  found.push(...(active ? trialFaults(active, sight.force) : restFaults(sight.force)));
  return found.flatMap(([fault, isSo]) => (isSo ? [fault] : []));
}

const restFaults = ({ candidate, share, rollout, shadowing }: TrafficForce): [string, boolean][] => [
  ['traffic of a candidate without a rollout', candidate !== null || share !== 0 || rollout !== null || shadowing],
];

/** What somebody else changed since the last look is not yet in what routers are told. */
function trialFaults(
  { state, policy: own, epochs, epoch, stable }: RolloutRecord,
  force: TrafficForce,
): [string, boolean][] {
  const most = state === 'baking' ? 0.99 : ['pending', 'verifying', 'shadowing'].includes(state) ? 0 : mostShare(own);
  return [
    ['more than allowed', force.share > most],
    ['two stables', force.stable !== stable.digest],
    ['the candidate is stable', force.candidate === force.stable],
    ['epochs out of order', epochs.some((one, at) => at > 0 && one.epoch <= epochs[at - 1]!.epoch)],
    ['counted under another epoch', force.rollout !== null && force.rollout.epoch !== epoch],
  ];
}
