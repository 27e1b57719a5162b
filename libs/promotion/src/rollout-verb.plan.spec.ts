import { describe, expect, it } from 'vitest';
import { decided, RolloutSandbox, specOf } from './rollout-world.fake.ts';

function shifting(policy: object = {}): RolloutSandbox {
  const box = new RolloutSandbox();
  box.sight.spec = specOf({ policy });
  box.publish(2);
  return box.settle();
}

function promoted(): RolloutSandbox {
  const box = shifting();
  box.say('promote', 'it is urgent');
  expect(box.rollout).toMatchObject({ state: 'promoted', reason: 'promoted by ada: it is urgent' });
  return box;
}

/** A newer version is on trial. */
function replaced(box: RolloutSandbox): RolloutSandbox {
  box.publish(3);
  return box.settle();
}

const codeOf = (steps: () => unknown): unknown => {
  try {
    steps();
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
};

describe('a person', () => {
  it('pauses and resumes; the same twice changes nothing', () => {
    const box = shifting();
    expect(box.say('pause', 'lunch')).toBe(true);
    expect(box.rollout).toMatchObject({ run: 'held', heldBy: 'ada', reason: 'held by ada: lunch', share: 0.01 });
    expect(box.say('pause')).toBe(false);
    expect(box.say('resume')).toBe(true);
    expect(box.rollout).toMatchObject({ run: 'running', heldBy: null });
    expect(box.say('resume')).toBe(false);
    expect(box.events.slice(-2)).toMatchObject([
      { type: 'held', actor: 'ada' },
      { type: 'resumed', actor: 'ada' },
    ]);
  });

  it('advances through every stage to the promotion', () => {
    const box = new RolloutSandbox();
    box.sight.spec = specOf({ policy: { shadow: {}, weightsPercent: [1, 20] } });
    box.publish(2);
    box.settle();
    const seen = [box.rollout.state as string];
    while (!box.isOver) {
      box.say('advance');
      seen.push(`${box.rollout.state} ${box.rollout.share}`);
    }
    expect(seen).toEqual(['shadowing', 'shifting 0.01', 'shifting 0.2', 'baking 0.99', 'promoted 0']);
  });

  it('advances and promotes only what is ready', () => {
    const box = new RolloutSandbox();
    box.publish(2, { state: 'loading', reason: 'server s1: pulling' });
    box.settle();
    for (const verb of ['advance', 'promote'] as const) {
      expect(codeOf(() => box.say(verb))).toBe('conflict');
      expect(() => box.say(verb)).toThrow(`cannot ${verb}, version 2 is not ready: server s1: pulling`);
    }
  });

  it('aborts: the rule is held until somebody resumes it, and nobody is in quarantine', () => {
    const box = shifting();
    box.say('abort');
    expect(box.rollout).toMatchObject({ state: 'aborted', endedAs: 'person' });
    expect(box.sight).toMatchObject({ quarantine: [], force: { held: 'ada', stable: 'd1', candidate: null } });
    expect(box.say('abort')).toBe(false);
    expect(box.settle().rollouts).toHaveLength(1);
    box.sight.force.held = null;
    expect(box.settle().rollouts).toHaveLength(2);
  });

  it('rolls back: in quarantine, and the rule is held', () => {
    const box = shifting();
    box.say('rollback', 'looks odd');
    expect(box.rollout).toMatchObject({
      state: 'rolled_back',
      endedAs: 'person',
      reason: 'rolled back by ada: looks odd',
    });
    expect(box.sight).toMatchObject({ quarantine: ['d2'], force: { held: 'ada', stable: 'd1', candidate: null } });
    expect(box.say('rollback')).toBe(false);
    expect(codeOf(() => box.say('resume'))).toBe('conflict');
    expect(() => box.say('promote')).toThrow('it is over (rolled_back); there is nothing to promote');
  });

  it('rolls back after the promotion while the old version is loaded', () => {
    const box = promoted();
    expect(box.sight.force).toMatchObject({ stable: 'd2', keep: ['d1'] });
    box.after(3_000_000).settle();
    expect(box.sight.force.keep).toEqual(['d1']);
    box.say('rollback');
    expect(box.rollout).toMatchObject({ state: 'rolled_back', endedAs: 'person', keepUntil: null });
    expect(box.sight).toMatchObject({ quarantine: ['d2'], force: { stable: 'd1', keep: [], held: 'ada' } });
    expect(box.settle().rollouts).toHaveLength(1);
  });

  it.each([
    [
      'when the window is over',
      (box: RolloutSandbox): unknown => void box.after(3_700_000).settle(),
      'not loaded any more',
    ],
    [
      'when the old version does not serve',
      (box: RolloutSandbox): unknown => box.set('d1', { state: 'failed' }),
      'not loaded any more',
    ],
    ['while another rollout goes on', (box: RolloutSandbox): unknown => void replaced(box), 'of version 3 goes on'],
    [
      'when a newer one is stable',
      (box: RolloutSandbox): unknown => replaced(box).say('promote'),
      'not stable any more',
    ],
  ] as const)('cannot go back after the promotion %s', (_case, change, words) => {
    const box = promoted();
    const first = box.rollout;
    change(box);
    expect(() => box.say('rollback', '', box.rollouts.find(({ id }) => id === first.id)!)).toThrow(words);
  });

  it('a promotion within the window of another one keeps only the newest old version', () => {
    const box = promoted();
    box.publish(3);
    box.settle();
    expect(box.sight.force).toMatchObject({ stable: 'd2', candidate: 'd3', keep: ['d1'] });
    box.say('promote');
    expect(box.sight.force).toMatchObject({ stable: 'd3', keep: ['d2'] });
  });
});

describe('a start by hand', () => {
  it.each([
    ['to what is stable', { wish: { version: 1, digest: 'd1' } }, () => undefined, 'conflict', 'is stable already'],
    [
      'to what is in quarantine',
      { wish: { version: 2, digest: 'd2' } },
      (box: RolloutSandbox): unknown => void box.sight.quarantine.push('d2'),
      'conflict',
      'quarantine',
    ],
    [
      'of a stopped endpoint',
      {},
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { spec: specOf({ stopped: true }) }),
      'conflict',
      'it is stopped',
    ],
    [
      'in another mode',
      {},
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { spec: specOf({ mode: 'newest' }) }),
      'invalid',
      'traffic.mode progressive',
    ],
    [
      'of nothing',
      {},
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { exists: false, spec: null }),
      'not_found',
      'does not exist',
    ],
    [
      'while one goes on',
      {},
      (box: RolloutSandbox): unknown => void box.settle(),
      'conflict',
      'rollout r1 of version 2 goes on',
    ],
    [
      'to what the rule does not want',
      {},
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { wish: { newest: null } }),
      'conflict',
      'wants no version',
    ],
  ] as const)('is refused %s', (_case, hand, change, code, words) => {
    const box = new RolloutSandbox();
    box.publish(2);
    change(box);
    expect(codeOf(() => box.start(hand))).toBe(code);
    expect(() => box.start(hand)).toThrow(words);
  });

  it('of what a person aborted goes on though the rule is held', () => {
    const box = shifting();
    box.say('abort');
    box.start({ reason: 'once more' });
    expect(box.settle().rollout).toMatchObject({ state: 'shifting', startedBy: 'ada', byHand: false });
    expect(box.sight.force.held).toBe('ada');
  });

  it('of an older version holds the rule, so that it does not undo that', () => {
    const box = shifting();
    box.decision = decided('promote');
    box.settle();
    box.start({ wish: { version: 1, digest: 'd1' } });
    expect(box.settle().rollout).toMatchObject({ state: 'promoted', candidate: { version: 1 }, byHand: true });
    expect(box.sight.force).toMatchObject({ stable: 'd1', held: 'ada' });
    expect(box.settle().rollouts).toHaveLength(2);
    box.publish(3);
    expect(box.settle().rollouts).toHaveLength(2);
  });
});
