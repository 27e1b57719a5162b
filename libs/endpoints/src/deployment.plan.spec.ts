import type { DeploymentState } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CurrentDeployment, planDeployments } from './deployment.plan.ts';

const want = (version: number, digest = `d${version}`) => ({ version, digest });
const has = (version: number, state: DeploymentState = 'ready', digest = `d${version}`): CurrentDeployment => ({
  id: `i-${digest}`,
  version,
  digest,
  state,
});

describe('which deployments an endpoint should have', () => {
  it.each<
    [
      string,
      ReturnType<typeof want>[],
      CurrentDeployment[],
      { create?: number[]; keep?: string[]; spare?: string[]; drain?: string[] },
    ]
  >([
    ['nothing wanted, nothing there', [], [], {}],
    ['the first', [want(1)], [], { create: [1] }],
    ['in step', [want(1)], [has(1)], { keep: ['i-d1'] }],
    ['the old one serves while the new one is not there', [want(2)], [has(1)], { create: [2], spare: ['i-d1'] }],
    ['… while it loads', [want(2)], [has(2, 'loading'), has(1)], { keep: ['i-d2'], spare: ['i-d1'] }],
    ['… and when it failed', [want(2)], [has(2, 'failed'), has(1)], { keep: ['i-d2'], spare: ['i-d1'] }],
    ['the new one is ready: the old one goes', [want(2)], [has(2), has(1)], { keep: ['i-d2'], drain: ['i-d1'] }],
    [
      'of two old ones the newest stays',
      [want(3)],
      [has(3, 'loading'), has(2), has(1)],
      { keep: ['i-d3'], spare: ['i-d2'], drain: ['i-d1'] },
    ],
    [
      'beyond maxVersions while one of two is not ready',
      [want(3), want(2)],
      [has(3, 'loading'), has(2), has(1)],
      { keep: ['i-d2', 'i-d3'], spare: ['i-d1'] },
    ],
    [
      'an old one that never served goes at once',
      [want(3)],
      [has(3, 'loading'), has(2, 'loading'), has(1)],
      { keep: ['i-d3'], spare: ['i-d1'], drain: ['i-d2'] },
    ],
    [
      'an old one that failed goes at once',
      [want(3)],
      [has(2, 'failed'), has(1)],
      { create: [3], spare: ['i-d1'], drain: ['i-d2'] },
    ],
    [
      'of two of one version the one that was not let go yet',
      [want(1, 'c')],
      [{ ...has(1, 'ready', 'a'), drains: true }, has(1, 'ready', 'b')],
      { create: [1], spare: ['i-b'], drain: ['i-a'] },
    ],
    [
      'an older one that serves before a newer one that was let go',
      [want(2)],
      [{ ...has(4), drains: true }, has(3)],
      { create: [2], spare: ['i-d3'], drain: ['i-d4'] },
    ],
    [
      'one that was let go, where nothing else serves',
      [want(2)],
      [{ ...has(1), drains: true }],
      { create: [2], spare: ['i-d1'] },
    ],
    ['nothing wanted any more: all goes', [], [has(2), has(1)], { drain: ['i-d1', 'i-d2'] }],
    ['going back: the newer serves until the older is there', [want(1)], [has(2)], { create: [1], spare: ['i-d2'] }],
    [
      'what drains is no spare',
      [want(2)],
      [has(2, 'loading'), has(1, 'draining')],
      { keep: ['i-d2'], drain: ['i-d1'] },
    ],
    ['what drains and is wanted again comes back', [want(1)], [has(1, 'draining')], { keep: ['i-d1'] }],
    ['the same version with other settings', [want(1, 'new')], [has(1)], { create: [1], spare: ['i-d1'] }],
  ])('%s', (_what, wanted, current, expected) => {
    const plan = planDeployments(wanted, current);
    expect({
      create: plan.create.map(({ version }) => version),
      keep: plan.keep.sort(),
      spare: plan.spare.sort(),
      drain: plan.drain.sort(),
    }).toEqual({ create: [], keep: [], spare: [], drain: [], ...expected });
  });

  const worlds = fc.tuple(
    fc.uniqueArray(fc.integer({ min: 1, max: 6 }), { maxLength: 3 }).map((versions) => versions.map((n) => want(n))),
    fc
      .uniqueArray(
        fc.record({
          version: fc.integer({ min: 1, max: 6 }),
          state: fc.constantFrom<DeploymentState>('pending', 'placing', 'loading', 'ready', 'draining', 'failed'),
        }),
        { selector: ({ version }) => version, maxLength: 6 },
      )
      .map((rows) => rows.map(({ version, state }) => has(version, state))),
  );
  it('every deployment has one fate; nothing that serves goes while too few of the wanted serve', () => {
    fc.assert(
      fc.property(worlds, ([wanted, current]) => {
        const plan = planDeployments(wanted, current);
        expect([...plan.keep, ...plan.spare, ...plan.drain].sort()).toEqual(current.map(({ id }) => id).sort());
        const ready = new Set(current.filter(({ state }) => state === 'ready').map(({ id }) => id));
        const serving = [...plan.keep, ...plan.spare].filter((id) => ready.has(id)).length;
        expect(serving).toBe(
          Math.min(ready.size, Math.max(wanted.length, plan.keep.filter((id) => ready.has(id)).length)),
        );
        expect(plan.keep.length + plan.create.length).toBe(wanted.length);
      }),
    );
  });
});
