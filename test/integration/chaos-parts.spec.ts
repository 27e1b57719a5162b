import { describe, expect, it } from 'vitest';
import { type ChaosWorld, planSchedule } from '../chaos/schedule.plan.ts';
import type { CheckedReply } from '../support/checked-load.ts';
import { scaleModel } from '../support/onnx.ts';
import type { OwnPostgres } from '../support/own-postgres.ts';
import { sha256, unloadMs, VersionBook } from '../support/version-book.ts';

const part = (kind: ChaosWorld['parts'][number]['kind'], ...names: string[]) => names.map((name) => ({ kind, name }));
const link = (kind: ChaosWorld['links'][number]['kind'], ...names: string[]) => names.map((name) => ({ kind, name }));
const world: ChaosWorld = {
  parts: [
    ...part('router', 'router-a', 'router-b'),
    ...part('agent', 'agent-a'),
    ...part('control-plane', 'control-plane'),
    ...part('triton', 'triton-a', 'triton-b'),
    ...part('postgres', 'postgres'),
    ...part('s3', 's3'),
  ],
  links: [
    ...link('router-triton', 'server-a-http', 'server-a-grpc'),
    ...link('agent-control', 'agent-a-control'),
    ...link('router-control', 'router-a-control', 'router-b-control'),
    ...link('control-postgres', 'control-postgres'),
    ...link('to-s3', 'to-s3'),
  ],
  smallDisk: 'server-a',
  servers: ['server-a', 'server-b'],
  crashModel: true,
  routerGraceMs: 6_000,
};

describe('the schedule of faults', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(planSchedule(7, world, 120_000)).toEqual(planSchedule(7, world, 120_000));
    expect(planSchedule(7, world, 120_000)).not.toEqual(planSchedule(8, world, 120_000));
  });

  it.each([1, 2, 3, 4, 5])('seed %i has every kind of fault on every kind of target within the time', (seed) => {
    const plan = planSchedule(seed, world, 90_000);
    const kindOf = (name: string) =>
      [...world.parts, ...world.links].find((one) => one.name === name)?.kind ?? name.slice(0, -2);
    const seen = new Set(
      plan.map(({ fault }) => `${fault.kind} ${'target' in fault ? kindOf(fault.target) : ''}`.trim()),
    );
    for (const kind of ['router', 'agent', 'control-plane', 'triton', 'postgres', 's3'])
      for (const fault of ['kill', 'freeze']) expect(seen).toContain(`${fault} ${kind}`);
    for (const kind of ['agent', 'control-plane', 'triton']) expect(seen).toContain(`end ${kind}`);
    for (const kind of ['router-triton', 'agent-control', 'router-control', 'control-postgres', 'to-s3'])
      for (const fault of ['cut', 'slow', 'hole']) expect(seen).toContain(`${fault} ${kind}`);
    for (const fault of ['corrupt-objects', 'crash-model', 'restore-backup', 'upgrade-schema'])
      expect(seen).toContain(fault);
    for (const fault of ['fill-disk', 'corrupt-cache']) expect(seen).toContain(`${fault} server`);
    const isolated = plan.filter(({ fault, durationMs }) => 'target' in fault && kindOf(fault.target) === 'router-control' && durationMs > world.routerGraceMs); // biome-ignore format: one row reads better
    expect(isolated.length).toBeGreaterThan(0);
    expect(plan.every(({ atMs }) => atMs < 90_000)).toBe(true);
  });
});

describe('the book of versions', () => {
  const row = (version: number, factor: number, state: string, from: number, since: number) => ({
    id: `${version} ${from}`, endpoint: 'e', version, state, project: 'p', model: 'm',
    sha256: sha256(scaleModel(factor)), from_ms: from, since_ms: since,
  }); // biome-ignore format: one row reads better
  const bookOf = async (...tables: ReturnType<typeof row>[][]) => {
    const book = new VersionBook();
    for (const factor of [2, 3, 4]) book.note(scaleModel(factor), factor);
    for (const rows of tables) await book.read({ query: async () => rows } as unknown as OwnPostgres);
    return book;
  };
  const reply = (version: number, factor: number, startedAt: number, endedAt = startedAt + 5): CheckedReply => ({
    endpoint: 'e', router: 'a', startedAt, endedAt, status: 200, version, factor, words: '',
  }); // biome-ignore format: one row reads better

  it.each([
    ['an answer of a version that lives', reply(2, 3, 60), undefined],
    ['one that began while it lived', reply(1, 2, 49, 70), undefined],
    ['one that ended when it began to live', reply(2, 3, 30, 41), undefined],
    ['one of a version that was let go, while servers still held it', reply(1, 2, 51), undefined],
    ['one of a version that was gone before it began', reply(1, 2, 51 + unloadMs), 'did not live'],
    ['one of a version that came later', reply(2, 3, 10, 20), 'did not live'],
    ['one that names the wrong version', reply(1, 3, 45), 'does not multiply by'],
    ['one of a version that nobody deployed', reply(9, 4, 45), 'never deployed'],
    ['one that is no multiple of its input', reply(2, Number.NaN, 45), 'no multiple'],
  ])('%s', async (_name, answer, fault) => {
    const book = await bookOf([row(1, 2, 'retired', 0, 50), row(2, 3, 'ready', 40, 45)]);
    if (fault === undefined) expect(book.fault(answer)).toBeUndefined();
    else expect(book.fault(answer)).toContain(fault);
  });

  it('does not forget what a backup put in place takes away, and sees a number that means other bytes', async () => {
    const book = await bookOf([row(3, 2, 'ready', 0, 10)], [row(3, 4, 'ready', 20, 30)]);
    expect(book.changed).toEqual(['p/m/3']);
    expect(book.fault(reply(3, 2, 90))).toBeUndefined();
  });
});
