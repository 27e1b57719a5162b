import { splitSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import type { VersionFacts } from './resolve/version.plan.ts';
import { decideUsers, type FollowingEndpoint, type HoldingDeployment } from './version-users.decide.ts';

const published = (...numbers: number[]): VersionFacts[] =>
  numbers.map((number) => ({ number, state: 'published', tags: number === 1 ? ['old'] : [] }));
const follows = (model: Partial<FollowingEndpoint['model']> = {}): FollowingEndpoint => ({
  name: 'e',
  model: { project: 'p', name: 'm', ...model },
});
const holds = (version: number, called = false): HoldingDeployment => ({ endpoint: 'e', version, called });

describe('who uses a version', () => {
  it.each<[string, FollowingEndpoint[], HoldingDeployment[], VersionFacts[], number[] | null, string[]]>([
    ['nobody', [], [], published(1, 2), [1], []],
    ['a deployment that is not retired', [], [holds(1)], published(1, 2), [1], ['endpoint e (version 1)']],
    ['a deployment of another version', [], [holds(2)], published(1, 2), [1], []],
    ['code of a served model', [], [holds(1, true)], published(1), [1], ['endpoint e (its code calls version 1)']],
    ['an endpoint that names it', [follows({ version: 1 })], [], published(1, 2), [1], ['endpoint e (version 1)']],
    ['an endpoint that names another', [follows({ version: 2 })], [], published(1, 2), [1], []],
    ['a rule that wants it', [follows()], [], published(1, 2), [2], ['endpoint e (version 2)']],
    ['a rule that wants a newer one', [follows()], [], published(1, 2), [1], []],
    ['a rule that keeps two', [follows({ maxVersions: 2 })], [], published(1, 2), [1], ['endpoint e (version 1)']],
    ['a rule with a tag', [follows({ select: { tags: ['old'], tagMatch: 'all', published: true } })], [], published(1, 2), [1], ['endpoint e (version 1)']],
    ['said once', [follows()], [holds(2)], published(1, 2), [2], ['endpoint e (version 2)']],
    ['the whole model, by a rule that nothing fits', [follows({ select: { tags: ['x'], tagMatch: 'all', published: true } })], [], published(1), null, ['endpoint e (follows it)']],
    ['the whole model, by all that is held', [follows()], [holds(1)], published(1, 2), null, ['endpoint e (version 1)', 'endpoint e (version 2)']],
  ])('%s', (_what, endpoints, deployments, versions, numbers, expected) => {
    expect(decideUsers(endpoints, deployments, versions, numbers)).toEqual(expected);
  }); // biome-ignore format: rows

  it('a split that names it, also of an endpoint that is stopped', () => {
    const spec = splitSpec.parse({ name: 's', targets: ['e/1', 'other/2'], weights: [1, 1] });
    const users = (numbers: number[] | null) => decideUsers([follows()], [], published(1, 2), numbers, [{ name: 's', spec }]); // biome-ignore format: one row reads better
    expect(users([1])).toEqual(['split s (e/1)']);
    expect(users([2])).toEqual(['endpoint e (version 2)']);
    expect(users(null)).toEqual(['endpoint e (version 2)', 'split s (e/1)']);
  });
});
