import { describe, expect, it } from 'vitest';
import { describeModels } from './model-state.decide.ts';
import { planSync } from './sync.plan.ts';
import type { Folder, Held, Indexed, IndexState, SyncWorld, Wanted } from './sync-world.ts';

const caller = 'caller-v1-0123456789ab';
const scorer = 'scorer';

const noHeld: Held = {
  busy: new Map(),
  failures: new Map(),
  warmed: new Set([caller, scorer]),
  untried: new Set(),
  stuck: new Set(),
  suspects: new Set(),
  measuring: new Set(),
  loadsHeld: false,
};

interface Scene {
  desired?: Record<string, Wanted>;
  /** State by model, or by model and version folder. */
  index?: Record<string, IndexState | Record<number, IndexState | [IndexState, string]>>;
  folders?: Record<string, Partial<Folder>>;
  held?: Partial<Held>;
  missing?: string[];
}

const wantedBoth: Record<string, Wanted> = {
  [caller]: { digest: 'c', hashes: [], needs: [scorer] },
  [scorer]: { digest: 's2', hashes: ['new'] },
};

function indexOf(index: NonNullable<Scene['index']>): Map<string, Indexed> {
  const rank: IndexState[] = ['READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE'];
  return new Map(
    Object.entries(index).map(([name, given]) => {
      const byVersion = Object.entries(typeof given === 'string' ? { 1: given } : given).map(([version, told]) => {
        const [state, reason] = typeof told === 'string' ? [told, ''] : told;
        return [Number(version), { state, reason }] as const;
      });
      const [liveliest] = [...byVersion].sort(([, a], [, b]) => rank.indexOf(a.state) - rank.indexOf(b.state));
      return [name, { ...liveliest![1], versions: new Map(byVersion) }];
    }),
  );
}

const world = ({ desired = wantedBoth, index = {}, folders = {}, held = {}, missing = [] }: Scene): SyncWorld => ({
  desired: new Map(Object.entries(desired)),
  removalsAllowed: true,
  index: indexOf(index),
  folders: new Map(
    Object.entries(folders).map(([name, folder]) => [name, { digest: null, current: true, intact: true, ...folder }]),
  ),
  missing: new Set(missing),
  held: { ...noHeld, ...held },
  nowMs: 0,
});
const actions = (scene: Scene) => planSync(world(scene)).map(({ kind, model }) => `${kind} ${model}`);
const stateOf = (name: string, scene: Scene) => describeModels(world(scene), 'gone').get(name);

const held = { [caller]: { digest: 'c', needs: [scorer] }, [scorer]: { digest: 's2' } };
const olderScorer = { ...held, [scorer]: { digest: 's1' } };

describe('what a model needs comes first', () => {
  it.each<[string, Scene, string[]]>([
    ['the need is not loaded', { folders: held }, [`load ${scorer}`]],
    ['the need is on its way', { folders: held, index: { [scorer]: 'LOADING' } }, []],
    ['the need is there', { folders: held, index: { [scorer]: 'READY' } }, [`load ${caller}`]],
    ['an older one stands under its name', { folders: olderScorer, index: { [scorer]: 'READY' } }, [`renew ${scorer}`]],
    [
      'the server is not to hold it',
      { folders: held, desired: { [caller]: wantedBoth[caller]! } },
      [`remove ${scorer}`],
    ],
  ])('%s', (_name, scene, expected) => {
    expect(actions(scene)).toEqual(expected);
  });

  it('waiting says for what; a need that failed for good fails who needs it, with the reason', () => {
    expect(stateOf(caller, { folders: held })).toEqual({ state: 'loading', reason: `waits for ${scorer}` });
    const failed: Scene = { folders: held, index: { [scorer]: { 1: ['UNAVAILABLE', 'Internal: boom'] } } };
    expect(actions(failed)).toEqual([]);
    expect(stateOf(caller, failed)).toEqual({
      state: 'failed',
      reason: `needs ${scorer}, which failed: Internal: boom`,
    });
    const later: Scene = { ...failed, held: { untried: new Set([scorer]) } };
    expect(stateOf(caller, later)?.state).toBe('loading');
  });

  it('a circle waits and says so', () => {
    const circle: Scene = {
      desired: {
        [caller]: { digest: 'c', hashes: [], needs: [scorer] },
        [scorer]: { digest: 's2', hashes: [], needs: [caller] },
      },
      folders: held,
    };
    expect(actions(circle)).toEqual([]);
    expect(stateOf(caller, circle)).toEqual({ state: 'loading', reason: `waits for ${scorer}` });
  });
});

describe('what is needed stays', () => {
  const nothing = { desired: {} };
  it.each<[string, Scene, string[]]>([
    [
      'as long as who needs it is loaded',
      { ...nothing, folders: held, index: { [caller]: 'READY', [scorer]: 'READY' } },
      [`unload ${caller}`],
    ],
    [
      'while that one still answers',
      { ...nothing, folders: held, index: { [caller]: 'UNLOADING', [scorer]: 'READY' } },
      [],
    ],
    [
      'and goes then',
      { ...nothing, folders: held, index: { [caller]: 'UNAVAILABLE', [scorer]: 'READY' } },
      [`unload ${scorer}`, `remove ${caller}`],
    ],
    [
      'a folder that is needed is not removed',
      { ...nothing, folders: held, index: { [caller]: 'READY' } },
      [`unload ${caller}`],
    ],
  ])('%s', (_name, scene, expected) => {
    expect(actions(scene)).toEqual(expected);
  });
});

describe('another model under a literal name', () => {
  const renewed = { ...held, [scorer]: { digest: 's2', version: 2 } };
  it.each<[string, Scene, string[], string]>([
    [
      'its bytes come first',
      { folders: olderScorer, index: { [scorer]: 'READY' }, missing: ['new'] },
      [`pull ${scorer}`],
      'warming',
    ],
    ['its version folder is there', { folders: renewed, index: { [scorer]: 'READY' } }, [`load ${scorer}`], 'loading'],
    ['it is loading', { folders: renewed, index: { [scorer]: { 1: 'READY', 2: 'LOADING' } } }, [], 'loading'],
    [
      'it is there, the older one is on its way out',
      { folders: renewed, index: { [scorer]: { 1: 'UNLOADING', 2: 'READY' } } },
      [`load ${caller}`],
      'ready',
    ],
    [
      'it failed: the older one goes on',
      { folders: renewed, index: { [scorer]: { 1: 'READY', 2: ['UNAVAILABLE', 'boom'] } } },
      [],
      'failed',
    ],
    [
      'its folder was spoilt while the older one serves',
      {
        folders: { ...held, [scorer]: { digest: 's2', version: 2, intact: false, current: false } },
        index: { [scorer]: 'READY' },
      },
      [`renew ${scorer}`],
      'staging',
    ],
    [
      'its folder is gone while it serves',
      { folders: { [caller]: held[caller]! }, index: { [scorer]: 'READY' } },
      [`renew ${scorer}`],
      'staging',
    ],
    ['nothing serves: the folder is made whole', { folders: olderScorer }, [`stage ${scorer}`], 'staging'],
  ])('%s', (_name, scene, expected, state) => {
    const full: Scene = {
      ...scene,
      folders: {
        ...scene.folders,
        [scorer]: { intact: scene.folders?.[scorer]?.digest === 's2', ...scene.folders?.[scorer] },
      },
    };
    expect(actions(full)).toEqual(expected);
    if (state !== 'warming') expect(stateOf(scorer, full)?.state).toBe(state);
  });

  it('a name of ours is never renewed in place', () => {
    const scene: Scene = {
      desired: { [caller]: { digest: 'c2', hashes: [] } },
      folders: { [caller]: { digest: 'c' } },
      index: { [caller]: 'READY' },
    };
    expect(actions(scene)).toEqual([`unload ${caller}`]);
  });
});
