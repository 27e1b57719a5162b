import { armStats, latencyBoundsMs } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CountBook } from './count-book.ts';
import { CountSource } from './serving/count.source.ts';
import { ArmStats, latencyPlace } from './serving/request-stats.ts';

const armsOf = (...arms: ArmStats[]) => new Map(arms.map((arm) => [Object.values(arm.labels).join(' '), arm]));

describe('counts of one arm', () => {
  it('puts each latency into the bucket of its bound, as a search from below does', () => {
    const search = (ms: number) => {
      const place = latencyBoundsMs.findIndex((bound) => ms <= bound);
      return place === -1 ? latencyBoundsMs.length : place;
    };
    const edges = latencyBoundsMs.flatMap((bound) => [bound - 0.001, bound, bound + 0.001]);
    for (const ms of [0, ...edges, 1e9]) expect([ms, latencyPlace(ms)]).toEqual([ms, search(ms)]);
    fc.assert(fc.property(fc.double({ min: 0, max: 1e6, noNaN: true }), (ms) => latencyPlace(ms) === search(ms)));
  });
  it.each<[string, number]>([
    ['ok', 0], ['invalid', 0], ['cancelled', 0], ['unauthenticated', 0], ['rate_limited', 0],
    ['upstream', 1], ['timeout', 1], ['unavailable', 1], ['internal', 1], ['no_space', 1], ['integrity', 1],
  ])('%s counts as %i errors', (outcome, errors) => {
    const arm = new ArmStats('e', '1', 'd');
    arm.count(outcome, 4);
    expect(arm).toMatchObject({ requests: 1, errors, ok: outcome === 'ok' ? 1 : 0 });
    expect([...arm.failures]).toEqual(outcome === 'ok' ? [] : [[outcome, 1]]);
  }); // biome-ignore format: rows
});

describe('what changed', () => {
  it('adds the arms of one version up, and tells only what is news', () => {
    const [one, other, quiet] = [
      new ArmStats('e', '1', 'd1'),
      new ArmStats('e', '1', 'd2'),
      new ArmStats('e', '2', 'd3'),
    ];
    const source = new CountSource(armsOf(one, other, quiet));
    expect(source.changed(200)).toEqual([]);
    one.count('ok', 4);
    other.count('timeout', 400);
    other.retries += 1;
    const [told] = source.changed(200);
    expect(told).toMatchObject({ endpoint: 'e', version: '1', requests: 2, errors: 1, retries: 1 });
    expect(armStats.parse(told).latency.reduce((sum, count) => sum + count, 0)).toBe(2);
    expect(source.changed(200)).toEqual([]);
    quiet.count('ok', 1);
    expect(source.changed(200)).toMatchObject([{ version: '2', requests: 1 }]);
  });
  it('tells so many at a time, and everybody gets a turn however busy the others are', () => {
    const arms = Array.from({ length: 10 }, (_, at) => new ArmStats(`e${at}`, '1', 'd'));
    const source = new CountSource(armsOf(...arms));
    const told = new Set<string>();
    for (let turn = 0; turn < 4; turn += 1) {
      for (const arm of arms) arm.count('ok', 1);
      const news = source.changed(3);
      expect(news).toHaveLength(3);
      for (const { endpoint } of news) told.add(endpoint);
    }
    expect(told.size).toBe(10);
    const sum = Object.fromEntries(source.changed(100).map(({ endpoint, requests }) => [endpoint, requests]));
    expect(Object.values(sum).every((requests) => requests === 4)).toBe(true);
  });
});

describe('the counts of all workers', () => {
  const counts = (endpoint: string, requests: number) => ({
    endpoint,
    version: '1',
    requests,
    errors: 0,
    retries: 0,
    latency: new Array<number>(latencyBoundsMs.length + 1).fill(requests),
  });
  const requestsOf = (book: CountBook, endpoint: string) => {
    book.again([`${endpoint} 1`]);
    return book.take(1_000)!.stats[endpoint]!['1']!.requests;
  };

  it('sends each change once, again when it was not heard, and all when nothing is known there', () => {
    const book = new CountBook();
    book.hear(1, [counts('a', 3), counts('b', 1)]);
    const told = book.take(10)!;
    expect(Object.keys(told.stats)).toEqual(['a', 'b']);
    expect(book.take(10)).toBeUndefined();
    book.again(told.keys);
    expect(book.take(10)!.keys).toEqual(['a 1', 'b 1']);
    book.allAgain();
    expect(book.take(10)!.keys).toEqual(['a 1', 'b 1']);
  });
  it('sends so many at a time, and everybody gets a turn', () => {
    const book = new CountBook();
    book.hear(
      1,
      Array.from({ length: 5 }, (_, at) => counts(`e${at}`, 1)),
    );
    expect(book.take(2)!.keys).toEqual(['e0 1', 'e1 1']);
    book.hear(1, [counts('e0', 2)]);
    expect(book.take(3)!.keys).toEqual(['e2 1', 'e3 1', 'e4 1']);
    expect(book.take(3)!.keys).toEqual(['e0 1']);
  });
  it('never falls, whichever workers end and begin', () => {
    const step = fc.record({
      worker: fc.integer({ min: 0, max: 3 }),
      end: fc.boolean(),
      more: fc.integer({ min: 0, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const book = new CountBook();
        const own = new Map<number, number>();
        let total = 0;
        book.hear(9, [counts('a', 0)]);
        for (const { worker, end, more } of steps) {
          own.set(worker, (own.get(worker) ?? 0) + more);
          total += more;
          book.hear(worker, [counts('a', own.get(worker)!)]);
          if (end) {
            book.gone(worker);
            own.delete(worker);
          }
          expect(requestsOf(book, 'a')).toBe(total);
        }
      }),
    );
  });
});
