import type { DeploymentState } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import { describe, expect, it } from 'vitest';
import { decideState, type StateRules, servingPlacements } from './deployment.decide.ts';

let next = 0;
const on = (state: string | null, more: Partial<Placement> = {}): Placement => {
  next += 1;
  return {
    endpoint: 'e', deployment: 'd', server: `s${next}`, serverName: `n${next}`, tritonModel: 'm', state: 'active',
    proved: state === 'ready', routedRevision: null, unroutedRevision: null, presence: 'live',
    observed: state === null ? null : { state, reason: state === 'failed' ? 'bad file' : null, inputs: null, outputs: null, maxBatchSize: null },
    ...more,
  }; // biome-ignore format: one record
};

describe('state of a deployment from what its servers say', () => {
  it.each<[string, DeploymentState, Placement[], DeploymentState, RegExp | null]>([
    ['placed nowhere', 'pending', [], 'placing', null],
    ['not told yet', 'pending', [on(null)], 'loading', /not told yet/],
    ['loading', 'loading', [on('loading')], 'loading', /loading/],
    ['ready everywhere', 'loading', [on('ready'), on('ready')], 'ready', null],
    ['ready on one of two', 'loading', [on('ready'), on('loading')], 'ready', null],
    [
      'a silent server is not waited for',
      'loading',
      [on('ready'), on('loading', { presence: 'silent' })],
      'ready',
      null,
    ],
    ['only silent ones: wait', 'loading', [on('ready', { presence: 'silent' })], 'loading', null],
    ['failed on one of two', 'loading', [on('ready'), on('failed')], 'ready', null],
    ['failed on one, the other is not done', 'loading', [on('loading'), on('failed')], 'loading', /loading/],
    ['failed on both', 'loading', [on('failed'), on('failed')], 'failed', /bad file/],
    ['stuck', 'loading', [on('stuck')], 'failed', /stuck/],
    ['a failed one that came good', 'failed', [on('ready')], 'ready', null],
    ['stays ready while one serves', 'ready', [on('ready'), on('failed')], 'ready', null],
    ['stays ready while its server restarts', 'ready', [on('loading', { proved: true })], 'ready', null],
    ['stays ready while its server is lost', 'ready', [on(null, { proved: true, presence: 'lost' })], 'ready', null],
    ['fails when the last one broke', 'ready', [on('failed')], 'failed', /bad file/],
    ['loads again when nothing proves it', 'ready', [on('loading')], 'loading', /loading/],
    ['what leaves does not count', 'loading', [on('ready', { state: 'leaving' })], 'placing', null],
  ])('%s', (_what, before, placements, state, reason) => {
    const decision = decideState(before, placements);
    expect(decision.state).toBe(state);
    if (reason) expect(decision.reason).toMatch(reason);
    else expect(decision.reason).toBeNull();
  });

  it.each<[string, StateRules, Placement[], DeploymentState, RegExp | null]>([
    ['enough of those wanted at least', { minReplicas: 2 }, [on('ready'), on('ready'), on('loading')], 'ready', null],
    ['too few yet', { minReplicas: 2 }, [on('ready'), on('loading')], 'loading', /loading/],
    ['too few placed', { minReplicas: 2 }, [on('ready')], 'loading', /1 of at least 2/],
    ['too few left', { minReplicas: 2 }, [on('ready'), on('failed')], 'failed', /bad file/],
    [
      'another version serves: all are waited for',
      { covered: true },
      [on('ready'), on('loading')],
      'loading',
      /loading/,
    ],
    [
      'another version serves: one cannot get its bytes',
      { covered: true },
      [
        on('ready'),
        on('pulling', {
          observed: { state: 'pulling', reason: 'no space', inputs: null, outputs: null, maxBatchSize: null },
        }),
      ],
      'ready',
      null,
    ],
    ['another version serves: one refused it', { covered: true }, [on('ready'), on('failed')], 'ready', null],
    [
      'another version serves: one is silent',
      { covered: true },
      [on('ready'), on(null, { presence: 'silent' })],
      'ready',
      null,
    ],
  ])('%s', (_what, rules, placements, state, reason) => {
    const decision = decideState('loading', placements, rules);
    expect(decision.state).toBe(state);
    if (reason) expect(decision.reason).toMatch(reason);
    else expect(decision.reason).toBeNull();
  });

  it('requests go to servers ready now, and only without any to those that proved it once', () => {
    const ready = on('ready');
    const restarting = on('loading', { proved: true });
    const silent = on('ready', { presence: 'silent' });
    expect(servingPlacements([ready, restarting, silent, on('loading')])).toEqual([ready]);
    expect(servingPlacements([restarting, silent, on('failed')])).toEqual([restarting, silent]);
    expect(servingPlacements([on('loading'), on('ready', { state: 'leaving' })])).toEqual([]);
  });
});
