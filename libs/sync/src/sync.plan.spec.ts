import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeModels } from './model-state.decide.ts';
import { planSync } from './sync.plan.ts';
import {
  type Action,
  type ActionKind,
  type Folder,
  type Held,
  type Indexed,
  type IndexState,
  isOurs,
  type SyncWorld,
  type Wanted,
} from './sync-world.ts';

const name = 'toy-v1-0123456789ab';
const other = 'toy-v2-ba9876543210';
const foreign = 'somebodys-model';

const held = (over: Partial<Held> = {}): Held => ({
  busy: new Map(),
  failures: new Map(),
  warmed: new Set(),
  untried: new Set(),
  stuck: new Set(),
  suspects: new Set(),
  measuring: new Set(),
  loadsHeld: false,
  ...over,
});

const world = (over: Partial<SyncWorld> = {}): SyncWorld => ({
  desired: new Map([[name, { digest: 'd1', hashes: ['h1'] }]]),
  removalsAllowed: true,
  index: new Map(),
  folders: new Map(),
  missing: new Set(),
  held: held(),
  nowMs: 1_000,
  ...over,
});

const entry = (state: IndexState, reason = ''): Map<string, Indexed> => new Map([[name, { state, reason }]]);
const folder = (over: Partial<Folder> = {}): Map<string, Folder> =>
  new Map([[name, { digest: 'd1', current: true, intact: true, ...over }]]);
const nothingDesired = { desired: new Map<string, Wanted>() };
const kinds = (over: Partial<SyncWorld>) => planSync(world(over)).map(({ kind, model }) => `${kind} ${model}`);
const stateOf = (over: Partial<SyncWorld>) => describeModels(world(over), 'gone').get(name);
const warmed = held({ warmed: new Set([name]) });

describe('planSync: the way in', () => {
  it.each<[string, Partial<SyncWorld>, ActionKind | undefined, string | undefined]>([
    ['blobs are missing', { missing: new Set(['h1']) }, 'pull', 'pulling'],
    ['blobs are there, no folder', {}, 'stage', 'staging'],
    [
      'folder of another digest',
      { folders: folder({ digest: 'd0', current: false, intact: false }) },
      'stage',
      'staging',
    ],
    ['folder not proven', { folders: folder({ intact: false }) }, 'stage', 'staging'],
    ['folder proven, never loaded', { folders: folder(), index: entry('') }, 'load', 'loading'],
    ['unloaded by somebody', { folders: folder(), index: entry('UNAVAILABLE', 'unloaded') }, 'load', 'loading'],
    ['loading', { folders: folder(), index: entry('LOADING') }, undefined, 'loading'],
    ['unloading', { folders: folder(), index: entry('UNLOADING') }, undefined, 'unloading'],
    ['ready, not proven', { folders: folder(), index: entry('READY') }, 'warm', 'warming'],
    ['ready and proven', { folders: folder(), index: entry('READY'), held: warmed }, undefined, 'ready'],
    [
      'ready, its cache lost a blob',
      { index: entry('READY'), held: warmed, missing: new Set(['h1']) },
      'pull',
      'ready',
    ],
    ['ready under another digest', { folders: folder({ digest: 'd0' }), index: entry('READY') }, 'unload', 'warming'],
    ['failed for a reason', { folders: folder(), index: entry('UNAVAILABLE', 'bad graph') }, undefined, 'failed'],
    [
      'failed for a reason, unproven after a restart of the agent',
      { folders: folder({ intact: false }), index: entry('UNAVAILABLE', 'bad graph'), missing: new Set(['h1']) },
      undefined,
      'failed',
    ],
    [
      'failed once, staged anew since',
      { folders: folder(), index: entry('UNAVAILABLE', 'bad graph'), held: held({ untried: new Set([name]) }) },
      'load',
      'loading',
    ],
    [
      'failed, and its settings would be written differently now',
      { folders: folder({ current: false, intact: false }), index: entry('UNAVAILABLE', 'bad graph') },
      'stage',
      'staging',
    ],
    ['Triton is gone, blobs missing', { index: undefined, missing: new Set(['h1']) }, 'pull', 'pulling'],
    ['Triton is gone', { index: undefined }, undefined, 'loading'],
  ])('%s', (_, over, action, state) => {
    expect(kinds(over)).toEqual(action ? [`${action} ${name}`] : []);
    expect(stateOf(over)?.state).toBe(state);
  });

  it('says Triton’s words as they stand, and that Triton is gone', () => {
    expect(stateOf({ folders: folder(), index: entry('UNAVAILABLE', 'bad graph') })?.reason).toBe('bad graph');
    expect(stateOf({ index: undefined })).toEqual({ state: 'loading', reason: 'gone' });
  });

  it('waits for a retry, and not beyond it', () => {
    const failures = (retryAtMs: number | null, digest = 'd1') => ({
      held: held({ failures: new Map([[name, { digest, reason: 'cut', retryAtMs }]]) }),
    });
    expect(kinds(failures(1_001))).toEqual([]);
    expect(kinds(failures(1_000))).toEqual([`stage ${name}`]);
    expect(kinds(failures(null))).toEqual([]);
    expect(stateOf(failures(null))).toEqual({ state: 'failed', reason: 'cut' });
    expect(kinds(failures(null, 'd0'))).toEqual([`stage ${name}`]);
  });

  it('leaves a busy model to its queue and goes on with the others', () => {
    const desired = new Map([
      [name, { digest: 'd1', hashes: ['h1'] }],
      [other, { digest: 'd2', hashes: ['h2'] }],
    ]);
    expect(kinds({ desired, held: held({ busy: new Map([[name, 'load']]) }) })).toEqual([`stage ${other}`]);
  });

  it('tells a stuck load', () => {
    const stuck = { folders: folder(), index: entry('LOADING'), held: held({ stuck: new Set([name]) }) };
    expect(kinds(stuck)).toEqual([]);
    expect(stateOf(stuck)?.state).toBe('stuck');
  });

  it('loads a model that took Triton down alone, and after the others', () => {
    const desired = new Map([
      [name, { digest: 'd1', hashes: [] }],
      [other, { digest: 'd2', hashes: [] }],
    ]);
    const folders = new Map([...folder(), [other, { digest: 'd2', current: true, intact: true }]]);
    const at = (over: Partial<Held>) => kinds({ desired, folders, held: held({ suspects: new Set([name]), ...over }) });
    expect(at({})).toEqual([`load ${other}`]);
    expect(at({ busy: new Map([[other, 'load']]) })).toEqual([]);
    expect(at({ busy: new Map([[name, 'load']]) })).toEqual([]);
    expect(
      kinds({
        folders,
        held: held({ suspects: new Set([name]) }),
        desired: new Map([[name, { digest: 'd1', hashes: [] }]]),
      }),
    ).toContain(`load ${name}`);
  });
});

describe('planSync: the way out', () => {
  it.each<[string, Partial<SyncWorld>, ActionKind | undefined]>([
    ['served', { index: entry('READY'), folders: folder() }, 'unload'],
    ['on its way out', { index: entry('UNLOADING'), folders: folder() }, undefined],
    ['still loading', { index: entry('LOADING'), folders: folder() }, undefined],
    ['unloaded', { index: entry('UNAVAILABLE', 'unloaded'), folders: folder() }, 'remove'],
    ['failed', { index: entry('UNAVAILABLE', 'bad graph'), folders: folder() }, 'remove'],
    ['only a folder', { folders: folder() }, 'remove'],
    ['gone', { index: entry('UNAVAILABLE', 'unloaded') }, undefined],
    ['Triton does not answer', { index: undefined, folders: folder() }, undefined],
    ['removals are held', { removalsAllowed: false, index: entry('READY'), folders: folder() }, undefined],
  ])('%s', (_, over, action) => {
    expect(kinds({ ...nothingDesired, ...over })).toEqual(action ? [`${action} ${name}`] : []);
  });

  it('keeps away from what it did not make', () => {
    const folders = new Map([[foreign, { digest: null, current: false, intact: false }]]);
    expect(kinds({ ...nothingDesired, folders, index: new Map([[foreign, { state: 'READY', reason: '' }]]) })).toEqual(
      [],
    );
  });

  it('shows held models as what they are', () => {
    const over = { ...nothingDesired, removalsAllowed: false, index: entry('READY'), folders: folder() };
    expect(stateOf(over)).toEqual({ state: 'ready', reason: null });
    expect(stateOf({ ...over, removalsAllowed: true })?.state).toBe('unloading');
  });
});

/** A model server and a disk as plain values; every action does what the real one does, or fails, or loses the process. */
class Toy {
  readonly index = new Map<string, Indexed>();
  readonly folders = new Map<string, Folder>();
  readonly cache = new Set<string>();
  readonly warmed = new Set<string>();
  readonly untried = new Set<string>();
  readonly failures = new Map<string, { digest: string; reason: string; retryAtMs: number | null }>();

  constructor(
    readonly desired: Map<string, Wanted & { bad: boolean }>,
    readonly removalsAllowed: boolean,
  ) {}

  world(nowMs: number): SyncWorld {
    const missing = new Set(
      [...this.desired.values()].flatMap(({ hashes }) => hashes).filter((h) => !this.cache.has(h)),
    );
    const folders = new Map(
      [...this.folders].map(([model, found]) => {
        const current = found.digest !== null && found.digest === this.desired.get(model)?.digest;
        return [model, { ...found, current, intact: current && found.intact }];
      }),
    );
    for (const model of this.warmed) if (this.index.get(model)?.state !== 'READY') this.warmed.delete(model);
    const { warmed, untried, failures } = this;
    return {
      desired: this.desired,
      removalsAllowed: this.removalsAllowed,
      index: new Map(this.index),
      folders,
      missing,
      held: held({ warmed, untried, failures }),
      nowMs,
    };
  }

  /** Does an action; `luck` false: a transport error in front of it. */
  act({ kind, model }: Action, nowMs: number, luck: boolean): void {
    const wanted = this.desired.get(model);
    if (!luck) {
      this.failures.set(model, { digest: wanted?.digest ?? '', reason: 'cut', retryAtMs: nowMs + 5 });
      return;
    }
    this.failures.delete(model);
    const served = this.index.get(model)?.state;
    if (kind === 'pull') for (const hash of wanted!.hashes) this.cache.add(hash);
    if (kind === 'stage') {
      expect(served, 'a folder is replaced only while nothing serves from it').not.toBe('READY');
      this.folders.set(model, { digest: wanted!.digest, current: true, intact: true });
      this.untried.add(model);
    }
    if (kind === 'load') {
      expect(wanted!.hashes.every((hash) => this.cache.has(hash))).toBe(true);
      this.untried.delete(model);
      this.index.set(model, wanted!.bad ? { state: 'UNAVAILABLE', reason: 'bad' } : { state: 'READY', reason: '' });
    }
    if (kind === 'warm') this.warmed.add(model);
    if (kind === 'unload') {
      expect(wanted?.digest === this.folders.get(model)?.digest && wanted !== undefined, 'never what is desired').toBe(
        false,
      );
      this.index.set(model, { state: 'UNAVAILABLE', reason: 'unloaded' });
    }
    if (kind === 'remove') {
      expect(served, 'never under a served model').not.toBe('READY');
      this.folders.delete(model);
      this.index.delete(model);
    }
  }

  /** What the process knew is gone. */
  crashAgent(): void {
    for (const memory of [this.warmed, this.untried, this.failures]) memory.clear();
  }

  crashTriton(): void {
    this.index.clear();
  }
}

const names = Array.from({ length: 4 }, (_, n) => `m-v${n}-${String(n).repeat(12)}`);
const anyState = fc.constantFrom<IndexState>('READY', 'UNAVAILABLE', '');
const anyWorld = fc.record({
  wanted: fc.array(
    fc.record({ model: fc.constantFrom(...names), digest: fc.constantFrom('a', 'b'), bad: fc.boolean() }),
  ),
  index: fc.array(fc.tuple(fc.constantFrom(...names, foreign), anyState, fc.constantFrom('unloaded', 'bad'))),
  folders: fc.array(fc.tuple(fc.constantFrom(...names, foreign), fc.constantFrom('a', 'b', null), fc.boolean())),
  cache: fc.array(fc.constantFrom('ha', 'hb', 'hx')),
  removalsAllowed: fc.boolean(),
  events: fc.array(fc.constantFrom('luck', 'luck', 'cut', 'agent dies', 'triton dies'), { maxLength: 30 }),
});

describe('planSync on generated worlds', () => {
  it('reaches what is desired from anywhere, in few steps, harming nothing on the way', () => {
    fc.assert(
      fc.property(anyWorld, ({ wanted, index, folders, cache, removalsAllowed, events }) => {
        const toy = new Toy(
          new Map(wanted.map(({ model, digest, bad }) => [model, { digest, hashes: [`h${digest}`], bad }])),
          removalsAllowed,
        );
        for (const [model, digest, intact] of folders)
          toy.folders.set(model, { digest: model === foreign ? null : digest, current: false, intact });
        for (const [model, state, reason] of index) {
          // Triton lists what has a folder, and serves what is whole.
          if (toy.folders.has(model)) toy.index.set(model, { state, reason: state === 'UNAVAILABLE' ? reason : '' });
        }
        for (const hash of cache) toy.cache.add(hash);
        const before = { served: toy.index.get(foreign), folder: toy.folders.has(foreign) };
        const presentBefore = [...toy.folders.keys()].filter((model) => isOurs(model, toy.folders.get(model)));

        let nowMs = 0;
        const step = (event: string) => {
          nowMs += 10;
          if (event === 'agent dies') toy.crashAgent();
          if (event === 'triton dies') toy.crashTriton();
          for (const action of planSync(toy.world(nowMs))) toy.act(action, nowMs, event !== 'cut');
        };
        for (const event of events) step(event);
        for (let n = 0; n < 10; n += 1) step('luck');

        expect(planSync(toy.world(nowMs))).toEqual([]);
        const states = describeModels(toy.world(nowMs), 'gone');
        const failedBefore = new Set(index.flatMap(([model, , reason]) => (reason === 'bad' ? [model] : [])));
        for (const [model, { bad }] of toy.desired) {
          const state = states.get(model)?.state;
          if (!bad && !failedBefore.has(model)) expect(state).toBe('ready');
          else expect(['ready', 'failed']).toContain(state);
          if (state === 'failed') expect(toy.index.get(model)).toEqual({ state: 'UNAVAILABLE', reason: 'bad' });
        }
        for (const model of presentBefore) {
          if (toy.desired.has(model)) continue;
          expect(toy.folders.has(model)).toBe(!removalsAllowed);
        }
        expect(toy.folders.has(foreign)).toBe(before.folder);
        if (!events.includes('triton dies')) expect(toy.index.get(foreign)).toEqual(before.served);
      }),
      { numRuns: 500 },
    );
  });
});
