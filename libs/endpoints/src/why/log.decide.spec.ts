import type { PlacementSight } from '@perch/fleet';
import { describe, expect, it } from 'vitest';
import { changeWords, consoleLines } from './log.decide.ts';

describe('what happened, in words', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['endpoint.create', { generation: 1, reason: '' }, 'created as generation 1'],
    [
      'endpoint.update',
      { generation: 2, reason: 'more room', changes: [{ path: 'fleet.replicas', before: 1, after: 2 }] },
      'changed to generation 2 (more room): fleet.replicas 1 -> 2',
    ],
    [
      'endpoint.update',
      { generation: 3, changes: Array.from({ length: 7 }, (_, at) => ({ path: `p${at}`, before: null, after: at })) },
      'changed to generation 3: p0 (nothing) -> 0, p1 (nothing) -> 1, p2 (nothing) -> 2, p3 (nothing) -> 3, p4 (nothing) -> 4, and 2 more',
    ],
    ['endpoint.rollback', { generation: 4, changes: [] }, 'set back as generation 4: '],
    ['endpoint.stop', { reason: 'night' }, 'stopped (night)'],
    ['endpoint.start', { reason: '' }, 'started'],
    ['endpoint.resume', { heldBy: 'olga', reason: 'fixed' }, 'automatic updates go on (fixed); olga had held them'],
    ['quarantine.add', { version: 8, reason: 'it erred' }, 'version 8 was refused (it erred)'],
    ['quarantine.release', { version: 8 }, 'version 8 may be deployed again'],
    ['endpoint.remove', { reason: 'done' }, 'removed (done)'],
    ['endpoint.status', { phase: 'blocked', message: 'version 2 waits' }, 'blocked: version 2 waits'],
    [
      'deployment.create',
      { version: 2, tritonModel: 'a-v2-01', reason: null },
      'version 2: deployment made as a-v2-01',
    ],
    ['deployment.ready', { version: 2 }, 'version 2 is ready'],
    ['deployment.failed', { version: 2, reason: 'server s1: no memory' }, 'version 2 failed (server s1: no memory)'],
    ['deployment.draining', { version: 1 }, 'version 1 drains: routers let go of it'],
    ['deployment.retired', { version: 1 }, 'version 1 is unloaded'],
    ['rollout.rolled_back', { version: 2, reason: 'version 2 erred' }, 'rollout rolled back: version 2 erred'],
    ['something.else', { weight: 0.5 }, 'something.else {"weight":0.5}'],
  ])('%s', (action, detail, words) => {
    expect(changeWords(action, detail)).toBe(words);
  });
});

describe('lines of consoles', () => {
  const sight = (server: string, tritonModel: string, lines: string[] | null) =>
    ({
      tritonModel,
      server: {
        id: server,
        name: server,
        observed: lines && {
          supervision: { state: 'running', restarts: 1, lastExit: 'killed for memory', console: lines },
        },
      },
    }) as unknown as PlacementSight;

  it('keeps those that name the models of the endpoint, under what ended the server', () => {
    const lines = ['started', "loading 'a-v1-01'", "loading 'b-v1-02'", 'a-v1-01 failed'];
    expect(consoleLines([sight('s1', 'a-v1-01', lines), sight('s1', 'a-v2-03', lines)])).toEqual(
      ['its model server ended: killed for memory', "loading 'a-v1-01'", 'a-v1-01 failed'].map((message) => ({
        at: null,
        source: 'server s1',
        actor: null,
        action: 'console',
        message,
      })),
    );
  });
  it('is silent where no line names one, and where nothing is known', () => {
    expect(
      consoleLines([sight('s1', 'a-v1-01', ['x']), sight('s2', 'a-v1-01', []), sight('s3', 'a-v1-01', null)]),
    ).toEqual([]);
  });
});
