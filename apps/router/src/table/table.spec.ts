import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diffSections, documentSchema, type Route, type RoutingTable, tableSections } from '@perch/contracts';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decideEffective } from './effective-table.decide.ts';
import { Slice } from './slice.ts';
import { SlicedJson } from './sliced-json.ts';
import { TableStore } from './table.store.ts';
import { readTableAnswer, WrongBase } from './table-answer.ts';

const lineage = '11111111-1111-4111-8111-111111111111';
const otherLineage = '22222222-2222-4222-8222-222222222222';
const route = (...deployments: string[]): Route => ({
  arms: deployments.slice(0, 1).map((deployment) => ({ deployment, share: 1 })),
  targets: deployments.map((deployment, index) => ({
    deployment,
    version: index + 1,
    tritonModel: `m-${deployment}`,
    servers: ['s'],
    maxBatchSize: 0,
    inputs: [],
    outputs: [],
    processing: { builtin: 'passthrough', options: {} },
    files: [],
  })),
  access: 'key',
  timeoutMs: 1_000,
  maxBodyBytes: 1_000,
  idempotent: true,
});
const table = (endpoints: RoutingTable['endpoints'], fields: Partial<RoutingTable> = {}): RoutingTable => ({
  lineage,
  revision: 1,
  schema: 1,
  confirmed: false,
  publishedAt: '2026-01-01T00:00:00.000Z',
  routers: 1,
  endpoints,
  servers: { s: { http: 'h:1', grpc: 'h:2' } },
  keys: { k: { hash: 'a'.repeat(64), endpoints: [] } },
  ...fields,
});
const whole = (document: unknown) => Buffer.from(JSON.stringify({ kind: 'whole', document }));
const read = (bytes: Buffer, current?: RoutingTable) => readTableAnswer(bytes, current, new Slice());
const sections = ({ endpoints, servers, keys }: RoutingTable) => ({ endpoints, servers, keys });
const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

describe('SlicedJson', () => {
  it('reads what JSON.parse reads, at any depth', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.nat(4), fc.constantFrom(undefined, 1), async (value, depth, blanks) => {
        const text = JSON.stringify(value, undefined, blanks);
        const got = await new SlicedJson(Buffer.from(text), new Slice()).parse(depth);
        expect(JSON.stringify(got)).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });
  it.each([
    '',
    '{',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,}',
    '{"a" 1}',
    '{a:1}',
    '{"a":1}x',
    '{"a":[1}',
    '{"a":}',
    '[1,',
    '"a',
    '{"a\\":1}',
    '{"a":tru}',
  ])('refuses %j', async (text) => {
    for (const depth of [0, 1, 3])
      await expect(new SlicedJson(Buffer.from(text), new Slice()).parse(depth)).rejects.toThrow('JSON broken');
  });
});

describe('readTableAnswer', () => {
  it('reads a whole table, and a patch on it, whose unchanged members stay the same objects', async () => {
    const before = await read(whole(table({ a: route('a1'), b: route('b1') })));
    const after = table({ a: route('a1'), c: route('c1') }, { revision: 2 });
    const patch = diffSections(sections(before), sections(after), same);
    const { endpoints: _e, servers: _s, keys: _k, ...head } = after;
    const patched = await read(Buffer.from(JSON.stringify({ kind: 'patch', base: 1, ...head, patch })), before);
    expect(patched).toEqual(after);
    expect(patched.endpoints['a']).toBe(before.endpoints['a']);
    await expect(read(Buffer.from(JSON.stringify({ kind: 'patch', base: 0, ...head, patch })), before)).rejects.toThrow(
      WrongBase,
    );
  });

  it('passes over fields it does not know', async () => {
    const document = { ...table({ a: { ...route('a1'), later: 1 } as Route }), more: { x: 1 } };
    expect((await read(whole(document))).endpoints['a']).toEqual(route('a1'));
  });

  it.each([
    [
      'a share that is missing',
      { a: { ...route('a1'), arms: [{ deployment: 'a1', share: 0.5 }] } },
      {},
      'shares of a add to 0.5',
    ],
    ['a server that is not listed', { a: route('a1') }, { servers: {} }, 'names server s'],
    ['a member of a wrong shape', { a: { ...route('a1'), timeoutMs: 'soon' } }, {}, 'endpoints.a: timeoutMs'],
    ['a member that is null', { a: null }, {}, 'endpoints.a'],
    ['a name that is none', { 'a//b': route('a1') }, {}, 'endpoint name'],
    ['a newer schema', {}, { schema: documentSchema + 1 }, `schema ${documentSchema + 1}`],
    ['a lineage that is none', {}, { lineage: 'x' }, 'lineage'],
  ])('refuses %s', async (_what, endpoints, fields, words) => {
    await expect(read(whole(table(endpoints as RoutingTable['endpoints'], fields)))).rejects.toThrow(words);
  });
});

describe('decideEffective', () => {
  const four = table({ a: route('a1'), b: route('b1'), c: route('c1', 'c2') });
  it.each([
    ['the first table', undefined, table({}), false],
    ['half removed', four, table({ a: route('a1'), b: route('b1') }), false],
    ['more than half removed', four, table({ a: route('a1') }), true],
    ['all removed, confirmed', four, table({}, { confirmed: true }), false],
    [
      'one removed, another lineage',
      four,
      table({ a: route('a1'), b: route('b1'), c: route('c1') }, { lineage: otherLineage }),
      true,
    ],
    [
      'one removed, another lineage, confirmed',
      four,
      table({ a: route('a1') }, { lineage: otherLineage, confirmed: true }),
      false,
    ],
    ['a key removed, another lineage', four, { ...four, lineage: otherLineage, keys: {} }, true],
    [
      'only added, another lineage',
      four,
      { ...four, lineage: otherLineage, endpoints: { ...four.endpoints, d: route('d1') } },
      false,
    ],
  ])('%s', (_what, trusted, next, held) => {
    expect(decideEffective(trusted, next).held).toBe(held);
  });

  it('serves, while it holds, everything of both', () => {
    const ids = fc.uniqueArray(fc.constantFrom('a1', 'a2', 'a3', 'a4', 'a5'), { maxLength: 5 });
    fc.assert(
      fc.property(ids, ids, fc.boolean(), (before, after, other) => {
        const trusted = table({ a: route(...before) });
        const next = table({ a: route(...after) }, { revision: 2, lineage: other ? otherLineage : lineage });
        const { table: served, held, heldDeployments } = decideEffective(trusted, next);
        const targets = served.endpoints['a']!.targets.map((one) => one.deployment).sort();
        expect(targets).toEqual(held ? [...new Set([...before, ...after])].sort() : [...after].sort());
        expect([...heldDeployments].sort()).toEqual(held ? before.filter((id) => !after.includes(id)).sort() : []);
        for (const arm of served.endpoints['a']!.arms) expect(targets).toContain(arm.deployment);
      }),
    );
  });
});

describe('TableStore', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-table-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('gives back what it was given, unchanged members as the same objects', async () => {
    const store = new TableStore(join(folder, 'deep/table'), { remember: true });
    expect(await store.load()).toBeUndefined();
    const effective = {
      table: table({ a: route('a1'), b: route('b1') }),
      held: true,
      heldDeployments: new Set(['b1']),
    };
    await store.save(effective);
    const first = await store.load();
    expect(first).toEqual(effective);
    await store.save({ ...effective, table: table({ a: route('a1'), b: route('b2') }, { revision: 2 }) });
    const second = await store.load();
    expect(second!.table.endpoints['a']).toBe(first!.table.endpoints['a']);
    expect(second!.table.endpoints['b']).toEqual(route('b2'));
    for (const section of tableSections) expect(Object.keys(second!.table[section]).length).toBeGreaterThan(0);
  });

  it('refuses a file that is cut off anywhere', async () => {
    const file = join(folder, 'cut');
    const store = new TableStore(file);
    await store.save({ table: table({ a: route('a1'), b: route('b1') }), held: false, heldDeployments: new Set() });
    const bytes = await readFile(file);
    for (let length = 0; length < bytes.length; length += 37) {
      await writeFile(file, bytes);
      await truncate(file, length);
      await expect(store.load(), `cut at ${length}`).rejects.toThrow('not whole');
    }
  });
});
