import type { Holding, Placement } from '@perch/fleet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  heldDeployment,
  isHeld,
  planHeldPlaces,
  routedModel,
  selectHeld,
  splitSource,
} from './external-endpoint.plan.ts';
import { boundBuiltin } from './resolve/processing.plan.ts';
import { parseSpec } from './spec.plan.ts';

const spec = (model: object = {}, more: object = {}) =>
  parseSpec({ name: 'e', model: { source: 'box/resnet', ...model }, ...more });
const holding = (server: string, version: string, fields: Partial<Holding> = {}): Holding => ({
  server,
  serverName: server,
  presence: 'live',
  drain: null,
  version,
  state: 'ready',
  ...fields,
});
const placement = (server: string, fields: Partial<Placement> = {}): Placement => ({
  endpoint: 'e',
  deployment: 'd',
  server,
  serverName: server,
  tritonModel: 'resnet/2',
  state: 'active',
  proved: true,
  routedRevision: 1,
  unroutedRevision: null,
  presence: 'live',
  observed: { state: 'ready', reason: null, inputs: null, outputs: null, maxBatchSize: null },
  ...fields,
});

describe('a source', () => {
  it('names a scope and a model; its versions are asked for by name and number', () => {
    expect(splitSource('box/resnet50')).toEqual({ scope: 'box', model: 'resnet50' });
    expect(routedModel('resnet50/3')).toEqual({ tritonModel: 'resnet50', tritonVersion: '3' });
    expect(routedModel('scale-v1-0123456789ab')).toEqual({ tritonModel: 'scale-v1-0123456789ab' });
  });

  it('gives the endpoint a model’s name when it has none', () => {
    expect(spec().model).toMatchObject({ project: 'external', name: 'resnet', source: 'box/resnet' });
    expect(spec({ project: 'vision', name: 'r' }).model).toMatchObject({ project: 'vision', name: 'r' });
  });

  it.each([
    ['without a slash', { source: 'resnet' }, {}, /source/],
    ['with two', { source: 'box/a/b' }, {}, /source/],
    ['and engine settings', {}, { engine: { maxBatchSize: 8 } }, /engine: has no meaning with model.source/],
    ['and tags', { select: { tags: ['prod'] } }, {}, /numbers alone/],
  ])('%s is refused', (_what, model, more, words) => {
    expect(() => spec(model, more)).toThrow(words);
  });
});

describe('which versions of what is held are wanted', () => {
  const known = new Set(['resnet/1']);
  it.each<[string, object, Holding[], number[]]>([
    ['the highest ready one', {}, [holding('a', '1'), holding('a', '2')], [2]],
    ['of any server', {}, [holding('a', '1'), holding('b', '3')], [3]],
    ['as many as asked for', { maxVersions: 2 }, [holding('a', '1'), holding('a', '2'), holding('a', '3')], [3, 2]],
    ['the fixed one', { version: 1 }, [holding('a', '1'), holding('a', '2')], [1]],
    ['a fixed one that is not there', { version: 7 }, [holding('a', '1')], []],
    [
      'those listed',
      { select: { versions: [1, 2] }, maxVersions: 9 },
      ['1', '2', '3'].map((v) => holding('a', v)),
      [2, 1],
    ],
    ['not what failed', {}, [holding('a', '1'), holding('a', '2', { state: 'failed' })], [1]],
    ['not what comes for the first time', {}, [holding('a', '2', { state: 'loading' })], []],
    ['what is loaded again', {}, [holding('a', '1', { state: 'loading' })], [1]],
    ['not what has no number of ours', {}, [holding('a', '0'), holding('a', '99999999999'), holding('a', '')], []],
  ])('%s', (_what, model, holdings, wanted) => {
    expect(selectHeld(spec(model), holdings, known)).toEqual(wanted);
  });

  it('makes a deployment that is the same until its processing changes', () => {
    const { digest, body, tritonModel } = heldDeployment(spec(), 2, boundBuiltin());
    expect([tritonModel, isHeld(tritonModel), body!.variants[0]!.model.files]).toEqual(['resnet/2', true, []]);
    expect(heldDeployment(spec({}, { limits: { timeoutMs: 1 } }), 2, boundBuiltin()).digest).toBe(digest);
    const other = spec({}, { processing: { builtin: 'text-embedding', options: { maxTokens: 9 } } });
    expect(heldDeployment(other, 2, boundBuiltin(other.processing)).digest).not.toBe(digest);
    expect(heldDeployment(spec(), 3, boundBuiltin()).digest).not.toBe(digest);
  });
});

describe('where held models are served', () => {
  const plan = (holdings: Holding[], placements: Placement[]) => {
    const { place, leave, short } = planHeldPlaces({ name: 'e', holdings, placements }, [
      { id: 'd', tritonModel: 'resnet/2' },
    ]);
    return {
      place: place.map(({ server }) => server),
      leave: leave.map(({ server }) => server),
      short: [...short.values()],
    };
  };
  const nothing = { place: [], leave: [], short: [] };
  it.each<[string, Holding[], Placement[], Partial<ReturnType<typeof plan>>]>([
    ['wherever they are ready', [holding('a', '2'), holding('b', '2'), holding('c', '1')], [], { place: ['a', 'b'] }],
    ['once each', [holding('a', '2'), holding('b', '2')], [placement('a')], { place: ['b'] }],
    ['not on a drained or silent server', [holding('a', '2', { drain: 'orderly' }), holding('b', '2', { presence: 'silent' })], [], { short: ['no server in service holds resnet/2'] }],
    ['on the last one though it is drained', [holding('a', '2', { drain: 'orderly' })], [placement('a')], {}],
    ['on the last one no more by force', [holding('a', '2', { drain: 'forced' })], [placement('a')], { leave: ['a'] }],
    ['off a drained one once another serves', [holding('a', '2', { drain: 'orderly' }), holding('b', '2')], [placement('a'), placement('b')], { leave: ['a'] }],
    ['not yet off a drained one', [holding('a', '2', { drain: 'orderly' }), holding('b', '2')], [placement('a')], { place: ['b'] }],
    ['off one that unloaded it', [holding('a', '1'), holding('b', '2')], [placement('a', { observed: null }), placement('b')], { leave: ['a'] }],
    ['on one that is silent', [holding('a', '2', { presence: 'silent' }), holding('b', '2')], [placement('a', { presence: 'silent' }), placement('b')], {}],
    ['on one that loads it again', [holding('a', '2', { state: 'loading' }), holding('b', '2')], [placement('a'), placement('b')], {}],
    ['off one that is in scope no more', [holding('b', '2')], [placement('a'), placement('b')], { leave: ['a'] }],
    ['on the only one, though it says nothing of it', [holding('a', '')], [placement('a', { observed: null })], {}],
  ])('%s', (_what, holdings, placements, wanted) => {
    expect(plan(holdings, placements)).toEqual({ ...nothing, ...wanted });
  }); // biome-ignore format: a table

  it('never leaves the last one that serves unless it is forced, never doubles, and comes to rest', () => {
    const server = fc.record({
      presence: fc.constantFrom('live' as const, 'silent' as const, 'lost' as const),
      drain: fc.constantFrom(null, 'orderly' as const),
      state: fc.constantFrom('ready', 'loading', 'failed', ''),
      placed: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(server, { maxLength: 5 }), (servers) => {
        const holdings = servers.map(({ presence, drain, state }, index) =>
          holding(`s${index}`, state === '' ? '' : '2', { presence, drain, state }),
        );
        let placed = servers.flatMap((one, index) => (one.placed ? [`s${index}`] : []));
        for (let pass = 0; pass < 3; pass += 1) {
          const placements = placed.map((one) => placement(one, { presence: servers[Number(one.slice(1))]!.presence }));
          const { place, leave } = plan(holdings, placements);
          expect(place.some((one) => placed.includes(one))).toBe(false);
          if (placed.length > 0) expect(leave.length).toBeLessThan(placed.length);
          if (pass === 2) expect([place, leave]).toEqual([[], []]);
          placed = [...placed.filter((one) => !leave.includes(one)), ...place];
        }
      }),
    );
  });
});
