import type { DeploymentState } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseSpec } from './spec.plan.ts';
import { decideStatus, type StatusFacts } from './status.plan.ts';

const spec = (select?: object) =>
  parseSpec({ name: 'e', model: { project: 'p', name: 'm', maxVersions: 2, ...(select ? { select } : {}) } });
const sight = (version: number, state: DeploymentState, reason: string | null = null, wanted = true) => ({
  version,
  state,
  reason,
  wanted,
});
const facts = (more: Partial<StatusFacts>): StatusFacts => ({
  spec: spec(), generation: 4, serving: [], wanted: [], deployments: [], short: undefined, modelExists: true, ...more,
}); // biome-ignore format: one record

describe('what an endpoint shows', () => {
  it.each<[string, Partial<StatusFacts>, string, string, string, number | null]>([
    [
      'no such model',
      { modelExists: false },
      'blocked',
      'no_model',
      'model p/m does not exist yet; upload a version of it',
      null,
    ],
    [
      'no version matches',
      { spec: spec({ tags: ['a', 'b'] }), serving: [1] },
      'blocked',
      'no_version',
      'no version of model p/m matches (published, tags all of a, b); version 1 serves',
      null,
    ],
    ['nothing started yet', { wanted: [2] }, 'ready', 'serving', 'nothing serves', 2],
    [
      'it loads',
      { wanted: [2], deployments: [sight(2, 'loading', 'server a: pulling')], serving: [1] },
      'progressing',
      'loading',
      'version 2 is loading (server a: pulling); version 1 serves',
      2,
    ],
    [
      'no server',
      { wanted: [2], deployments: [sight(2, 'placing', 'no live server in its pool')] },
      'blocked',
      'no_server',
      'version 2 waits: no live server in its pool; nothing serves',
      2,
    ],
    [
      'it failed',
      { wanted: [2], deployments: [sight(2, 'failed', 'server a: bad'), sight(1, 'ready', null, false)], serving: [1] },
      'blocked',
      'deployment_failed',
      'version 2 failed: server a: bad; version 1 serves',
      2,
    ],
    [
      'a stand-in that failed is no news',
      { wanted: [2], deployments: [sight(2, 'ready'), sight(1, 'failed', 'x', false)], serving: [2] },
      'ready',
      'serving',
      'version 2 serves',
      null,
    ],
    [
      'too few servers',
      { wanted: [2], deployments: [sight(2, 'ready')], serving: [2], short: 'wants 2 servers, its pool has 1 live' },
      'progressing',
      'too_few_servers',
      'version 2 serves; wants 2 servers, its pool has 1 live',
      null,
    ],
    [
      'all well',
      { wanted: [3, 2], deployments: [sight(3, 'ready'), sight(2, 'ready')], serving: [3, 2] },
      'ready',
      'serving',
      'version 3, 2 serves',
      null,
    ],
  ])('%s', (_what, more, phase, reason, message, nextVersion) => {
    expect(decideStatus(facts(more))).toEqual({
      phase, reason, message, nextVersion, generationSeen: 4, servingVersions: more.serving ?? [],
    }); // biome-ignore format: one record
  });
});
