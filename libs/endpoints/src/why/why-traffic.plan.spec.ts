import { describe, expect, it } from 'vitest';
import { noForce, type TrafficForce } from '../traffic/traffic.plan.ts';
import type { WhyDeployment, WhyFacts } from './why-facts.ts';
import { trialRuleStep, trialTrafficStep } from './why-traffic.plan.ts';

const deployment: WhyDeployment = {
  id: 'd8', version: 8, state: 'ready', reason: null, since: '2026-01-01T00:00:00.000Z', deployable: true,
}; // biome-ignore format: one record
const facts = (force: Partial<TrafficForce>, refused: number[] = []): WhyFacts =>
  ({
    name: 'text/a',
    traffic: {
      force: { ...noForce, stable: 'x7', ...force },
      digests: new Map([['d8', 'x8'], ['d7', 'x7']]),
      refused: refused.map((version) => ({ version, digest: '0123456789abcdef', reason: 'it erred' })),
    },
  }) as unknown as WhyFacts; // biome-ignore format: one record

describe('why a version of a progressive endpoint is served or not', () => {
  it.each<[string, WhyFacts, WhyDeployment | undefined, string | undefined, string | undefined]>([
    ['stable', facts({ stable: 'x8' }), deployment, 'ok', 'it is the stable one of its rollouts'],
    ['candidate', facts({ candidate: 'x8' }), deployment, 'ok', 'it is the candidate of a rollout'],
    ['kept', facts({ keep: ['x8'] }), deployment, 'ok', 'it stays loaded for a rollback'],
    ['refused', facts({}, [8]), undefined, 'failed', 'a rollout refused it: it erred'],
    ['another one refused', facts({}, [9]), undefined, undefined, undefined],
    ['held', facts({ held: 'olga' }), undefined, 'failed', 'automatic updates are held by olga'],
    ['new', facts({}), deployment, undefined, undefined],
    ['not progressive', { name: 'text/a' } as WhyFacts, deployment, undefined, undefined],
  ])('by the rule: %s', (_what, given, of, state, message) => {
    const step = trialRuleStep(given, 8, of);
    expect([step?.state, step?.message]).toEqual([state, message]);
  });
  it('names what to do about a refusal', () =>
    expect(trialRuleStep(facts({}, [8]), 8, undefined)!.whatToDo).toContain(
      '"perch endpoint quarantine text/a --release 0123456789ab"',
    ));
  it.each<[string, WhyFacts, string | undefined, string | undefined]>([
    ['candidate', facts({ candidate: 'x8' }), 'waiting', 'it is on trial and gets nothing yet; version 7 serves'],
    ['kept', facts({ keep: ['x8'] }), 'failed', 'version 7 replaced it, and it stays loaded for a rollback'],
    ['stable', facts({ stable: 'x8' }), 'waiting', 'version 7 serves in its place'],
    ['new', facts({}), 'waiting', 'it is ready for its trial; version 7 serves'],
    ['not progressive', { name: 'text/a' } as WhyFacts, undefined, undefined],
  ])('by the traffic: %s', (_what, given, state, message) => {
    const step = trialTrafficStep(given, deployment, '7');
    expect([step?.state, step?.message]).toEqual([state, message]);
  });
});
