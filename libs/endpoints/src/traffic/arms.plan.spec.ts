import { describe, expect, it } from 'vitest';
import { shareForced } from './arms.plan.ts';
import { type ForcedRollout, noForce, type TrafficForce } from './traffic.plan.ts';

const rollout: ForcedRollout = {
  id: 'r', epoch: 2, salt: 'pepper', leaseMs: 15_000, slowMs: null, slowGraceMs: 0, metrics: [], fallback: null, shadow: null, feedbackKey: null,
}; // biome-ignore format: one record
const on = (digest: string, more: { wanted?: boolean; unusable?: boolean } = {}) => ({
  deployment: `d${digest}`, digest, wanted: true, unusable: false, ...more,
}); // biome-ignore format: one record
const force = (more: Partial<TrafficForce> = {}): TrafficForce => ({
  ...noForce, stable: 's', candidate: 'c', share: 0.25, rollout, ...more,
}); // biome-ignore format: one record
const spec = (sticky?: { header: string }) => ({
  name: 'text/a',
  traffic: { mode: 'progressive' as const, ...(sticky ? { sticky } : {}) },
});
const arms = (said: TrafficForce, targets: ReturnType<typeof on>[]) => {
  const chosen = shareForced(spec(), said, targets);
  return [
    chosen.arms.map(({ deployment, share }) => `${deployment} ${share}`).join(', '),
    chosen.rollout !== undefined,
  ];
};

describe('arms of a progressive endpoint', () => {
  it.each<[string, Partial<TrafficForce>, ReturnType<typeof on>[], string, boolean]>([
    ['a trial', {}, [on('c'), on('s')], 'dc 0.25, ds 0.75', true],
    ['a candidate without a share', { share: 0 }, [on('c'), on('s')], 'ds 1', true],
    ['a candidate with all of it', { share: 1 }, [on('c'), on('s')], 'dc 1', true],
    ['a share that is none', { share: Number.NaN }, [on('c'), on('s')], 'ds 1', true],
    ['a share beyond 1', { share: 7 }, [on('c'), on('s')], 'dc 1', true],
    ['nobody is told how to judge', { rollout: null }, [on('c'), on('s')], 'dc 0.25, ds 0.75', false],
    ['the candidate is missing', {}, [on('s')], 'ds 1', false],
    ['routers cannot serve the candidate', {}, [on('c', { unusable: true }), on('s')], 'ds 1', false],
    ['the stable one is missing', {}, [on('c')], 'dc 1', false],
    ['routers cannot serve the stable one', {}, [on('c'), on('s', { unusable: true })], 'dc 1', false],
    ['candidate and stable one are the same', { candidate: 's' }, [on('s'), on('c')], 'ds 1', false],
    ['no candidate', { candidate: null }, [on('c'), on('s')], 'ds 1', false],
    ['neither: what was kept comes before what is new', { keep: ['k'] }, [on('n'), on('k', { wanted: false })], 'dk 1', false],
    ['neither, nothing kept: what is wanted', {}, [on('x', { wanted: false }), on('n')], 'dn 1', false],
    ['neither: anything', {}, [on('x', { wanted: false })], 'dx 1', false],
    ['nothing that routers can serve: they go on trying the first', {}, [on('c', { unusable: true }), on('s', { unusable: true })], 'dc 1', false],
    ['nothing at all', {}, [], '', false],
  ])('%s', (_what, said, targets, shares, tried) => expect(arms(force(said), targets)).toEqual([shares, tried])); // biome-ignore format: rows

  it('names the deployments of a trial, and one salt for users that stay where they are', () => {
    const { rollout: told, sticky } = shareForced(spec({ header: 'X-User-Id' }), force(), [on('c'), on('s')]);
    expect(told).toEqual({ ...rollout, stable: 'ds', candidate: 'dc' });
    expect(sticky).toEqual({ header: 'x-user-id', salt: 'pepper' });
    const calm = shareForced(spec({ header: 'X-User-Id' }), force({ rollout: null }), [on('s')]);
    expect(calm.sticky).toEqual({ header: 'x-user-id', salt: 'text/a' });
  });
});
