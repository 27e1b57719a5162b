import { describe, expect, it } from 'vitest';
import { decided, type deployed, RolloutSandbox, specOf } from './rollout-world.fake.ts';

const tensor = (name: string, shape: number[]) => ({ name, datatype: 'FP32' as const, shape });
const signature = (...dims: number[]) => ({ inputs: [tensor('x', dims)], outputs: [tensor('y', [-1, 2])] });

/** Version 2 beside stable version 1, up to its first traffic. */
function shifting(policy: object = {}): RolloutSandbox {
  const box = new RolloutSandbox();
  box.sight = { ...box.sight, spec: specOf({ policy }) };
  box.publish(2);
  box.settle();
  expect(box.rollout).toMatchObject({ state: 'shifting', share: 0.01 });
  return box;
}

describe('the rule starts a rollout', () => {
  it('when what it wants is not what is stable, and takes it to its first weight', () => {
    const box = new RolloutSandbox();
    expect(box.step()).toBe(false);
    box.publish(2, { state: 'loading' });
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'verifying', candidate: { deployment: 'id2' }, startedBy: 'system' });
    expect(box.sight.force).toMatchObject({ stable: 'd1', candidate: 'd2', share: 0, rollout: null });
    box.set('d2', { state: 'ready' });
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'shifting', share: 0.01, epoch: 1 });
    expect(box.rollout.baseline).toMatchObject({ slowMs: 200, requestsPerMinute: 600 });
    expect(box.sight.force).toMatchObject({ stable: 'd1', candidate: 'd2', share: 0.01 });
    expect(box.sight.force.rollout).toMatchObject({ epoch: 1, slowMs: 200, leaseMs: 15_000, shadow: null });
    expect(box.types).toEqual(['started', 'stage', 'step']);
  });

  it('begins at 5 % on a quiet endpoint', () => {
    const box = new RolloutSandbox();
    const world = box.world.bind(box);
    box.world = () => ({ ...world(), baseline: { r0: {}, slowMs: null, requestsPerMinute: 10 } });
    box.publish(2);
    box.settle();
    expect(box.rollout.share).toBe(0.05);
    expect(box.sight.force.rollout).toMatchObject({ slowMs: null, metrics: ['contract'] });
  });

  it.each([
    ['without anything stable', (box: RolloutSandbox): unknown => Object.assign(box.sight.force, { stable: null })],
    ['while a person holds it', (box: RolloutSandbox): unknown => Object.assign(box.sight.force, { held: 'ada' })],
    ['to what was refused', (box: RolloutSandbox): unknown => void box.sight.quarantine.push('d2')],
    [
      'of a stopped endpoint',
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { spec: specOf({ stopped: true }) }),
    ],
    [
      'in another mode',
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { spec: specOf({ mode: 'newest' }) }),
    ],
    [
      'of a removed endpoint',
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { exists: false, spec: null }),
    ],
    ['to nothing', (box: RolloutSandbox): unknown => Object.assign(box.sight, { wish: { newest: null } })],
  ])('never %s', (_case, change) => {
    const box = new RolloutSandbox();
    box.publish(2);
    change(box);
    box.settle();
    expect(box.rollouts).toEqual([]);
  });

  it('of new settings of the same version', () => {
    const box = new RolloutSandbox();
    box.publish(1, { id: 'id1b', digest: 'd1b' });
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'shifting', candidate: { version: 1, digest: 'd1b' } });
    expect(box.events[0]!.message).toBe('version 1 with new settings is to take over from version 1');
  });
});

describe('verifying', () => {
  const verifying = (more: Parameters<typeof deployed>[1], stable = {}) => {
    const box = new RolloutSandbox();
    box.set('d1', stable);
    box.publish(2, more);
    return box.settle();
  };

  it('refuses a deployment that failed, at once and for good, and the rule goes on with the next version', () => {
    const box = verifying({ state: 'failed', reason: 'server s1: golden request 2: output differs' });
    expect(box.rollout).toMatchObject({ state: 'rolled_back', endedAs: 'verdict' });
    expect(box.rollout.reason).toBe('version 2 did not prove itself: server s1: golden request 2: output differs');
    expect(box.sight).toMatchObject({ quarantine: ['d2'], force: { stable: 'd1', candidate: null, held: null } });
    box.settle();
    expect(box.rollouts).toHaveLength(1);
    box.publish(3);
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'shifting', candidate: { version: 3 } });
  });

  it('refuses a signature that breaks callers, unless a person allows it', () => {
    const box = verifying({ signature: signature(-1, 8) }, { signature: signature(-1, 4) });
    expect(box.rollout).toMatchObject({ state: 'rolled_back', endedAs: 'verdict' });
    expect(box.rollout.reason).toContain('input x is FP32 [-1, 8], not FP32 [-1, 4]');
    box.sight.quarantine = [];
    expect(() => box.start({ wish: { version: 2, digest: 'd2' } })).toThrow(
      /breaks callers of version 1: input x .*allowBreaking/,
    );
    box.start({ wish: { version: 2, digest: 'd2' }, allowBreaking: true });
    expect(box.settle().rollout.state).toBe('shifting');
  });

  it('gives up after verifyMs, quarantines nobody, and tries again once the version is ready', () => {
    const box = verifying({ state: 'placing', reason: 'no room' });
    expect(box.rollout.reason).toBe('version 2 is not ready everywhere yet: no room');
    expect(box.plan().wakeInMs).toBeLessThanOrEqual(30_000);
    box.after(3_600_000).settle();
    expect(box.rollout).toMatchObject({ state: 'aborted', endedAs: 'timeout' });
    expect(box.sight.quarantine).toEqual([]);
    expect(box.settle().rollouts).toHaveLength(1);
    box.set('d2', { state: 'ready', reason: null });
    expect(box.settle().rollouts).toHaveLength(2);
  });

  it('waits for a deployment that is not there yet', () => {
    const box = new RolloutSandbox();
    box.sight.wish = { newest: { version: 2, digest: 'd2' } };
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'pending', candidate: { deployment: '' } });
    box.publish(2);
    expect(box.settle().rollout).toMatchObject({ state: 'shifting', candidate: { deployment: 'id2' } });
  });

  it('promotes at once where stable itself fails', () => {
    const box = verifying({}, { state: 'failed', reason: 'its file is gone' });
    expect(box.rollout).toMatchObject({ state: 'promoted' });
    expect(box.sight.force.stable).toBe('d2');
  });
});

describe('on trial', () => {
  it('a shadow comes first where the policy has one, without any traffic', () => {
    const box = new RolloutSandbox();
    box.sight.spec = specOf({ policy: { shadow: { sample: 0.5 } } });
    box.publish(2);
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'shadowing', share: 0, epoch: 1 });
    expect(box.sight.force).toMatchObject({ share: 0, shadowing: true, rollout: { shadow: { sample: 0.5 } } });
    box.decision = decided('shift', { share: 0.01 });
    box.step();
    expect(box.rollout).toMatchObject({ state: 'shifting', share: 0.01, epoch: 2 });
    expect(box.sight.force).toMatchObject({ share: 0.01, shadowing: false, rollout: { shadow: null } });
  });

  it('goes through the weights, each an epoch, bakes, and is promoted with the old version kept', () => {
    const box = shifting();
    box.decision = decided('shift', { share: 0.25 });
    box.after(60_000).step();
    expect(box.rollout).toMatchObject({ share: 0.25, epoch: 2, epochs: [{ share: 0.01 }, { share: 0.25 }] });
    box.decision = decided('bake', { share: 0.99 });
    box.after(60_000).step();
    expect(box.rollout).toMatchObject({ state: 'baking', share: 0.99, epoch: 3 });
    box.decision = decided('promote', { share: 1 });
    box.after(600_000).step();
    expect(box.rollout).toMatchObject({ state: 'promoted', endedAs: 'promoted', share: 0 });
    expect(box.sight.force).toMatchObject({ stable: 'd2', candidate: null, keep: ['d1'], share: 0, rollout: null });
    expect(box.types).toEqual(['started', 'stage', 'step', 'step', 'step', 'promoted']);
    expect(box.plan().wakeInMs).toBe(3_600_000);
    box.after(3_600_001).step();
    expect(box.sight.force.keep).toEqual([]);
    expect(box.plan().wakeInMs).toBeNull();
  });

  it('never gets more than the largest weight of its policy before the bake', () => {
    const box = shifting({ weightsPercent: [1, 10] });
    box.decision = decided('shift', { share: 0.8 });
    box.step();
    expect(box.rollout.share).toBe(0.1);
    const events = box.events.length;
    box.after(60_000).step();
    expect([box.rollout.epoch, box.events.length]).toEqual([2, events]);
  });

  it('is rolled back by a verdict with its evidence, is never deployed again, and the rule goes on', () => {
    const box = shifting();
    box.decision = decided('roll_back', { e: 25, reasons: ['error of the candidate'] });
    box.step();
    expect(box.rollout).toMatchObject({ state: 'rolled_back', endedAs: 'verdict', reason: 'error of the candidate' });
    expect(box.events.at(-1)).toMatchObject({ type: 'rolled_back', decision: { e: 25 }, input: { share: 0.01 } });
    expect(box.sight).toMatchObject({ quarantine: ['d2'], force: { stable: 'd1', candidate: null, held: null } });
  });

  it('says once that it waits, when evidence was too little for a dwell, and goes on by itself', () => {
    const box = shifting();
    box.after(1_000).step();
    expect(box.rollout.run).toBe('running');
    for (let turn = 0; turn < 3; turn += 1) box.after(60_000).step();
    expect(box.rollout.run).toBe('waiting');
    expect(box.types.filter((type) => type === 'waiting')).toHaveLength(1);
    box.decision = decided('shift', { share: 0.05 });
    box.step();
    expect(box.rollout).toMatchObject({ run: 'running', share: 0.05 });
  });

  it('shows how much feedback came, which is no part of a decision that is stored', () => {
    const box = shifting();
    const feedback = [{ flag: 'f', stable: { n: 9, x: 1 }, candidate: { n: 4, x: 0 }, differs: false }];
    box.evidence = { ...box.evidence, feedback };
    box.decision = decided('shift');
    box.step();
    expect(box.rollout.decision).toEqual({ ...box.decision, feedback });
    expect(box.events.at(-1)).toMatchObject({ type: 'step', decision: box.decision });
    expect(box.events.at(-1)!.decision).not.toHaveProperty('feedback');
  });

  it('is held after maxWait, still guarded, until a person resumes it', () => {
    const box = shifting();
    box.decision = decided('hold', { verdict: 'insufficient' });
    box.after(3_600_000).step();
    expect(box.rollout).toMatchObject({ run: 'held', heldBy: 'system', state: 'shifting', share: 0.01 });
    box.decision = decided('shift', { share: 0.05 });
    box.after(60_000).step();
    expect(box.rollout).toMatchObject({ run: 'held', share: 0.01 });
    box.say('resume');
    expect(box.rollout.patienceSince).toEqual(box.now);
    box.step();
    expect(box.rollout).toMatchObject({ run: 'running', share: 0.05 });
    box.say('pause');
    box.decision = decided('roll_back');
    box.step();
    expect(box.rollout.state).toBe('rolled_back');
  });

  it('ends unjudged where the policy says so after maxWait, and is not tried again by itself', () => {
    const box = shifting();
    box.decision = decided('abort');
    box.after(3_600_000).step();
    expect(box.rollout).toMatchObject({ state: 'aborted', endedAs: 'policy' });
    expect(box.settle().rollouts).toHaveLength(1);
    box.publish(3);
    expect(box.settle().rollouts).toHaveLength(2);
  });

  it('a weight that falls says that traffic grew', () => {
    const box = shifting({ weightsPercent: [1, 5] });
    box.decision = decided('shift', { share: 0.05 });
    box.step();
    box.decision = decided('shift', { share: 0.01, verdict: 'hold' });
    box.step();
    expect(box.types.at(-1)).toBe('traffic_grew');
    expect(box.rollout).toMatchObject({ share: 0.01, epoch: 3 });
  });

  it('goes back when only the candidate serves nowhere; when both are away it waits', () => {
    const box = shifting();
    box.set('d1', { state: 'loading' });
    box.set('d2', { state: 'loading', reason: 'server s1 does not report' });
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'shifting', run: 'waiting' });
    expect(box.rollout.reason).toContain('server s1 does not report');
    expect(box.step()).toBe(false);
    box.set('d1', { state: 'ready' });
    box.set('d2', { state: 'failed', reason: 'server s1: it crashed' });
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'rolled_back', endedAs: 'verdict' });
  });

  it('writes counts at most about once a second', () => {
    const box = shifting();
    box.after(1_000).step();
    const { rowVersion } = box.rollout;
    box.after(200);
    expect(box.step()).toBe(false);
    box.after(1_000).step();
    expect(box.rollout.rowVersion).toBe(rowVersion + 1);
  });
});

describe('a newer version in the middle', () => {
  it('takes the place of the candidate twice, then waits for the end', () => {
    const box = shifting();
    box.publish(3, { state: 'loading' });
    box.step();
    expect(box.rollout).toMatchObject({
      state: 'pending',
      share: 0,
      epochs: [],
      restarts: 1,
      candidate: { version: 3 },
    });
    expect(box.rollouts).toHaveLength(1);
    const { epoch } = box.rollout;
    box.set('d3', { state: 'ready' });
    box.settle();
    expect(box.rollout).toMatchObject({ state: 'shifting', epoch: epoch + 1, epochs: [{ epoch: epoch + 1 }] });
    box.publish(4);
    box.settle();
    box.publish(5);
    box.settle();
    expect(box.rollout).toMatchObject({ candidate: { version: 4 }, restarts: 2, queued: { version: 5 } });
    expect(box.types.filter((type) => type === 'queued')).toHaveLength(1);
    box.decision = decided('promote');
    box.settle();
    expect(box.rollouts.map(({ state, candidate }) => `${candidate.version} ${state}`)).toEqual([
      '4 promoted',
      '5 promoted',
    ]);
  });

  it('waits while the rollout is held, and for one that a person chose', () => {
    const box = shifting();
    box.say('pause');
    box.publish(3);
    box.settle();
    expect(box.rollout).toMatchObject({ run: 'held', candidate: { version: 2 }, queued: { version: 3 } });
    box.say('resume');
    box.settle();
    expect(box.rollout).toMatchObject({ candidate: { version: 3 }, queued: null, restarts: 1 });
  });
});

describe('the endpoint itself ends it', () => {
  it.each([
    [
      'removed',
      'the endpoint was removed',
      null,
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { exists: false }),
    ],
    [
      'stopped',
      'the endpoint was stopped',
      'd1',
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { spec: specOf({ stopped: true }) }),
    ],
    [
      'another mode',
      "the endpoint's traffic has mode newest now",
      null,
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { spec: specOf({ mode: 'newest' }) }),
    ],
    [
      'another sticky key',
      'the sticky key of the endpoint changed',
      'd1',
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { spec: specOf({ header: 'x-user' }) }),
    ],
    [
      'unpublished',
      'wants version 1 again, which is stable',
      'd1',
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { wish: { newest: { version: 1, digest: 'd1' } } }),
    ],
    [
      'nothing wanted',
      'wants version 2 no more',
      'd1',
      (box: RolloutSandbox): unknown => Object.assign(box.sight, { wish: { newest: null } }),
    ],
    [
      'quarantined by a person',
      'was put in quarantine',
      'd1',
      (box: RolloutSandbox): unknown => void box.sight.quarantine.push('d2'),
    ],
    [
      'another stable',
      'stable is not version 1 any more',
      'd9',
      (box: RolloutSandbox): unknown => Object.assign(box.sight.force, { stable: 'd9' }),
    ],
  ] as const)('%s', (_case, words, stable, change) => {
    const box = shifting();
    change(box);
    box.step();
    expect(box.rollout).toMatchObject({ state: 'aborted', endedAs: 'endpoint' });
    expect(box.rollout.reason).toContain(words);
    expect(box.sight.force).toMatchObject({ stable, candidate: null, share: 0, rollout: null, held: null });
    expect(box.sight.quarantine.filter((digest) => digest !== 'd2')).toEqual([]);
  });
});
