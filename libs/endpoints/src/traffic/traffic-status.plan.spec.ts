import type { DeploymentState } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseSpec } from '../spec.plan.ts';
import { decideStatus, type StatusFacts } from '../status.plan.ts';
import { noForce, type TrafficForce } from './traffic.plan.ts';
import { trafficVerdict } from './traffic-status.plan.ts';

const spec = parseSpec({ name: 'e', model: { project: 'p', name: 'm' }, traffic: { mode: 'progressive' } });
const sight = (version: number, state: DeploymentState = 'ready', share = 0, more: { digest?: string; reason?: string } = {}) => ({
  version, state, share, digest: `x${version}`, wanted: true, reason: null, ...more,
}); // biome-ignore format: one record
const statusOf = (
  deployments: ReturnType<typeof sight>[],
  said: Partial<TrafficForce>,
  newest: { version: number; digest: string } | null,
  more: Partial<StatusFacts> = {},
) => {
  const serving = [...new Set(deployments.filter(({ share }) => share > 0).map(({ version }) => version))];
  const facts: StatusFacts = {
    spec, generation: 1, serving, wanted: newest ? [newest.version] : [], deployments, short: undefined, modelExists: true, ...more,
  }; // biome-ignore format: one record
  const force = { ...noForce, stable: 'x7', ...said };
  const { phase, reason, message, nextVersion } = decideStatus(
    facts,
    trafficVerdict(facts, { force, wish: { newest }, wanted: [] }),
  );
  return [phase, reason, message, nextVersion];
};
const v7 = { version: 7, digest: 'x7' };
const v8 = { version: 8, digest: 'x8' };
const refusal = { version: 8, digest: 'abcdefabcdef0123', reason: 'it erred' };

describe('what a progressive endpoint shows', () => {
  it.each<[string, Parameters<typeof statusOf>, unknown[]]>([
    ['it serves', [[sight(7, 'ready', 1)], {}, v7], ['ready', 'serving', 'version 7 serves', null]],
    ['the first one loads', [[sight(7, 'loading')], { stable: null }, v7], ['progressing', 'loading', 'version 7 is loading; nothing serves', 7]],
    ['a newer one loads', [[sight(8, 'loading'), sight(7, 'ready', 1)], {}, v8], ['progressing', 'loading', 'version 8 is loading; version 7 serves', 8]],
    ['a newer one is there', [[sight(8), sight(7, 'ready', 1)], {}, v8], ['progressing', 'rollout', 'version 7 serves; version 8 is ready for its trial', 8]],
    ['a newer one failed', [[sight(8, 'failed', 0, { reason: 'bad' }), sight(7, 'ready', 1)], {}, v8], ['blocked', 'deployment_failed', 'version 8 failed: bad; version 7 serves', 8]],
    ['a trial', [[sight(8, 'ready', 0.05), sight(7, 'ready', 0.95)], { candidate: 'x8' }, v8], ['progressing', 'rollout', 'version 7 serves; version 8 on trial with 5 %', 8]],
    ['a trial with a part of a percent', [[sight(8, 'ready', 0.001), sight(7, 'ready', 0.999)], { candidate: 'x8' }, v8], ['progressing', 'rollout', 'version 7 serves; version 8 on trial with 0.1 %', 8]],
    ['a candidate that loads', [[sight(8, 'loading', 0, { reason: 'server a: pulling' }), sight(7, 'ready', 1)], { candidate: 'x8' }, v8], ['progressing', 'rollout', 'version 7 serves; version 8 is loading (server a: pulling) for its trial', 8]],
    ['a candidate without a server', [[sight(8, 'placing', 0, { reason: 'no room' }), sight(7, 'ready', 1)], { candidate: 'x8' }, v8], ['blocked', 'no_server', 'version 8 waits: no room; version 7 serves', 8]],
    ['a candidate that failed', [[sight(8, 'failed', 0, { reason: 'golden request a: no' }), sight(7, 'ready', 1)], { candidate: 'x8' }, v8], ['blocked', 'deployment_failed', 'version 8 failed: golden request a: no; version 7 serves', 8]],
    ['copies of requests', [[sight(8), sight(7, 'ready', 1)], { candidate: 'x8', shadowing: true }, v8], ['progressing', 'rollout', 'version 7 serves; version 8 is tried with copies of requests', 8]],
    ['other settings', [[sight(7, 'ready', 0.25, { digest: 'y7' }), sight(7, 'ready', 0.75)], { candidate: 'y7' }, { version: 7, digest: 'y7' }], ['progressing', 'rollout', 'version 7 serves; version 7 with other settings on trial with 25 %', 7]],
    ['the stable one is down', [[sight(8, 'ready', 1), sight(7, 'failed')], { candidate: 'x8' }, v8], ['progressing', 'rollout', 'version 7 does not serve; version 8 on trial with 100 %', 8]],
    ['refused', [[sight(7, 'ready', 1)], {}, v7, { refusals: [refusal] }], ['blocked', 'refused', 'version 7 serves; version 8 was refused: it erred; release it with "perch endpoint quarantine e --release abcdefabcdef"', null]],
    ['refused, all there is', [[sight(7, 'ready', 1)], {}, null, { refusals: [refusal] }], ['blocked', 'refused', 'version 7 serves; version 8 was refused: it erred; release it with "perch endpoint quarantine e --release abcdefabcdef"', null]],
    ['settings refused', [[sight(8, 'ready', 1)], { stable: 'x8' }, v8, { refusals: [refusal] }], ['blocked', 'refused', 'version 8 serves; version 8 with other settings was refused: it erred; release it with "perch endpoint quarantine e --release abcdefabcdef"', null]],
    ['an older one was refused', [[sight(9, 'ready', 1)], { stable: 'x9' }, { version: 9, digest: 'x9' }, { refusals: [refusal] }], ['ready', 'serving', 'version 9 serves', null]],
    ['held, in step', [[sight(7, 'ready', 1)], { held: 'olga' }, v7], ['ready', 'held', 'version 7 serves; automatic updates are held by olga; "perch endpoint resume e" lets them go on', null]],
    ['held, something newer', [[sight(7, 'ready', 1)], { held: 'olga' }, v8], ['blocked', 'held', 'version 7 serves; automatic updates are held by olga; "perch endpoint resume e" lets them go on', 8]],
    ['no version at all', [[], { stable: null }, null], ['blocked', 'no_version', 'no version of model p/m matches (published); nothing serves', null]],
  ])('%s', (_what, given, shown) => expect(statusOf(...given)).toEqual(shown)); // biome-ignore format: rows
});
