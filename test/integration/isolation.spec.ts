import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { doubling, misbehaving } from '../../bench/modules.mjs';
import { IsolationStand } from './isolation-stand.ts';
import { SteadyLoad } from './steady-load.ts';

const timeoutMs = 400;
const took = (what: string) => new RegExp(`^module test/bad@\\d+: preprocess ${what}`);
/** Each ends its cell but the ones marked: the modules of one kind of cell share them out, since many ends are a loop. */
const contained = (place: 'worker' | 'process'): [string, number, RegExp][] => [
  ['loop', 504, took(`ran longer than (399|400) ms; its ${place} was ended$`)],
  ['exit', 500, took(`ended its ${place}: process.exit\\(7\\)$`)],
  ['rejection', 500, took(`ended its ${place}: a rejected promise that nobody waited for \\(Error: nobody waits\\)`)],
  ['throw', 500, took('threw TypeError: no such thing$')],
];
const ofWorker: [string, number, RegExp][] = [
  ['loop later', 504, took('gave no answer within (399|400) ms$')],
  ['crash', 500, took('ended its worker: an error that nobody caught \\(Error: out of nowhere\\)')],
  ['heap', 500, took('ended its worker: its heap grew beyond 64 MB$')],
  ['never', 504, took('gave no answer within (399|400) ms$')],
  ['refuse', 400, /^field "n" is missing$/],
];
const ofProcess: [string, number, RegExp][] = [
  ['buffers', 500, took('(threw RangeError: Array buffer allocation failed|ended its process: its process held \\d+ MB, more than 256 MB)$')],
  ['heap', 500, took('ended its process: its heap grew beyond 64 MB$')],
  ['file', 500, took('threw: file access was refused \\(FileSystemRead /etc/hostname\\)$')],
  ['write', 500, took('threw: file access was refused \\(FileSystemWrite /tmp/perch-module\\)$')],
  ['network', 500, took('threw: network access was refused \\(Network fetch of http://192.0.2.1/\\)$')],
  ['connection', 500, took('threw: network access was refused \\(Network connect to 192.0.2.1')],
  ['command', 500, took('threw: a process of its own was refused \\(ChildProcess')],
  ['environment', 500, took('threw: environment access was refused \\(Environment HOME\\)$')],
]; // biome-ignore format: one row a case
/** Only of these the time is to be over. */
const late = ['loop', 'loop later', 'never'];

describe('a module that misbehaves hurts itself alone', () => {
  let stand: IsolationStand;
  const heap = { PERCH_MODULE_HEAP_MB: '64', PERCH_MODULE_MEMORY_MB: '256', PERCH_MODULE_LOAD_TIMEOUT_MS: '2000' };
  /** Ratios of the other endpoint's p99, for the eye. */
  const ratios: Record<string, string> = {};
  let usualP99 = 0;

  beforeAll(async () => {
    stand = await IsolationStand.start(heap);
    stand.set('good', stand.module('test/good', doubling));
    stand.set('builtin', undefined);
    for (const isolation of ['worker', 'process'] as const)
      for (const one of ['a', 'b']) stand.set(`${isolation}/${one}`, stand.module('test/bad', misbehaving), isolation);
    stand.set('echo/inline', stand.module('test/echo', doubling), 'inline');
    stand.set('echo/process', stand.module('test/echo', doubling), 'process');
    await stand.publish();
    for (const one of ['worker/a', 'worker/b', 'process/a', 'process/b']) await stand.until(one, { do: 'nothing' });
    await new SteadyLoad(stand, 'good').during(async () => new Promise((done) => setTimeout(done, 500)));
    const before = await new SteadyLoad(stand, 'good').during(
      async () => new Promise((done) => setTimeout(done, 1_000)),
    );
    usualP99 = before.p99Ms;
  });
  afterAll(async () => {
    console.log(`p99 of another endpoint beside each, usual ${usualP99.toFixed(1)} ms:`, JSON.stringify(ratios));
    await stand?.stop();
  });

  /** Asks one that misbehaves, while others go on. */
  const bad = async (endpoint: string, kind: string) => {
    const headers = { 'x-request-timeout-ms': String(late.includes(kind) ? timeoutMs : 10_000) };
    let answer: Awaited<ReturnType<IsolationStand['ask']>> | undefined;
    const other = await new SteadyLoad(stand, 'good').during(async () => {
      answer = await stand.ask(endpoint, { do: kind }, headers);
      // the next one finds a module that answers
      await stand.until(endpoint, { do: 'nothing' });
    });
    ratios[`${endpoint} ${kind}`] = (other.p99Ms / usualP99).toFixed(2);
    expect(other.failures).toEqual([]);
    return { status: answer!.status, words: answer!.json?.error?.message };
  };

  it.each(['inline', 'worker', 'process'] as const)(
    '%s: preprocess, the model, postprocess, carry',
    async (isolation) => {
      stand.set('echo', stand.module('test/echo', doubling), isolation);
      await stand.publish();
      await stand.until('echo', { x: [1], tag: 0 });
      const answer = await stand.ask('echo', { x: [1, 2.5], tag: 'a' });
      expect(answer.json).toEqual({ y: [2, 5], tag: 'a' });
    },
  );

  it.each(contained('worker'))('in a worker: %s', async (kind, status, words) => {
    expect(await bad('worker/a', kind)).toEqual({ status, words: expect.stringMatching(words) });
  });
  it.each(ofWorker)('in a worker: %s', async (kind, status, words) => {
    expect(await bad('worker/b', kind)).toEqual({ status, words: expect.stringMatching(words) });
  });
  it('in a worker: prototypes changed under everybody are its own', async () => {
    await bad('worker/b', 'pollution');
    expect((await stand.ask('builtin', { x: [[1, 2]] })).json).toEqual({ y: [[1, 2]] });
  });
  it.each(contained('process'))('in a process: %s', async (kind, status, words) => {
    expect(await bad('process/a', kind)).toEqual({ status, words: expect.stringMatching(words) });
  });
  it.each(ofProcess)('in a process: %s', async (kind, status, words) => {
    expect(await bad('process/b', kind)).toEqual({ status, words: expect.stringMatching(words) });
  });

  it.each([
    ['for (;;);', 'load ran longer than 2000 ms; its worker was ended'],
    ['throw new Error("no weights");', 'load threw: no weights'],
    ['process.exit(3);', 'load ended its worker: process.exit(3)'],
  ])('a load of %s is said in the report, and others are served meanwhile', async (text, words) => {
    const module = stand.module('test/slow', `async load() { ${text} }, preprocess() { return { inputs: {} }; },`);
    stand.set('slow', module);
    const other = await new SteadyLoad(stand, 'good').during(async () => {
      await stand.publish();
      await stand.stand.untilReport(({ problems }) => Object.values(problems).join().includes(words), 50_000);
    });
    expect(other.failures).toEqual([]);
    expect(Object.values(stand.stand.control.reports.at(-1)!.problems)).toEqual([
      `module test/slow@${module.number}: ${words}`,
    ]);
    stand.remove('slow');
    await stand.publish();
  });

  it('a module whose worker ends again and again is refused at once, and tried again later', async () => {
    const other = await new SteadyLoad(stand, 'good').during(async () => {
      let last = await stand.ask('worker/a', { do: 'exit' });
      for (let turn = 0; turn < 20 && last.status !== 503; turn += 1)
        last = await stand.ask('worker/a', { do: 'exit' });
      expect(last.json.error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/^module test\/bad@\d+: its worker ends again and again \(last: process.exit\(7\)\); it is tried again in \d+ s$/) }); // biome-ignore format: one row
      expect(last.headers.get('retry-after')).toBe('1');
      await stand.until('worker/a', { do: 'nothing' });
    });
    expect(other.failures).toEqual([]);
  }, 120_000);
});
