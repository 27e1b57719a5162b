import type { DeploymentState } from '@perch/contracts';
import type { Placement } from '@perch/fleet';
import { describe, expect, it } from 'vitest';
import { decideState, servingPlacements } from './deployment.decide.ts';

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
    ['ready on one of two', 'loading', [on('ready'), on('loading')], 'loading', /loading/],
    [
      'a silent server is not waited for',
      'loading',
      [on('ready'), on('loading', { presence: 'silent' })],
      'ready',
      null,
    ],
    ['only silent ones: wait', 'loading', [on('ready', { presence: 'silent' })], 'loading', null],
    ['failed on one', 'loading', [on('ready'), on('failed')], 'failed', /bad file/],
    ['stuck', 'loading', [on('stuck')], 'failed', /stuck/],
    ['a failed one that came good', 'failed', [on('ready')], 'ready', null],
    ['stays ready while one serves', 'ready', [on('ready'), on('failed')], 'ready', null],
    ['stays ready while its server restarts', 'ready', [on('loading', { proved: true })], 'ready', null],
    ['stays ready while its server is lost', 'ready', [on(null, { proved: true, presence: 'lost' })], 'ready', null],
    ['fails when the last one broke', 'ready', [on('failed')], 'failed', /bad file/],
    ['loads again when nothing proves it', 'ready', [on('loading')], 'loading', /loading/],
    ['what leaves does not count', 'loading', [on('ready', { state: 'leaving' })], 'placing', null],
  ])('%s', (_what, before, placements, state, reason) => {
    const decision = decideState(before, placements, undefined);
    expect(decision.state).toBe(state);
    if (reason) expect(decision.reason).toMatch(reason);
    else expect(decision.reason).toBeNull();
  });

  it('says why it has no server', () => {
    expect(decideState('pending', [], 'no live server in its pool')).toEqual({
      state: 'placing',
      reason: 'no live server in its pool',
    });
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
