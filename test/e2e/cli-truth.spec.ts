import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Diagnosis, Endpoint, EndpointWhy, GarbageReport } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaleModel } from '../support/onnx.ts';
import { Person, type Up, until } from './cli-stack.ts';

let person: Person;
let up: Up;
beforeAll(async () => {
  person = await Person.make();
  up = await person.up();
  await upload(1, '--publish');
  await person.json('endpoint', 'add', 'text/scale', '--model', 'nlp/scale', '--wait');
}, 180_000);
afterAll(async () => {
  await up?.end();
  await person?.leave();
});

const run = (...args: string[]) => person.run(args);
async function upload(factor: number, ...flags: string[]): Promise<void> {
  await writeFile(join(person.folder, 'model.onnx'), scaleModel(factor));
  await person.json('model', 'upload', 'nlp/scale', 'model.onnx', ...flags);
}
const infer = () => run('endpoint', 'infer', 'text/scale', '--json', '{"x": [[1, 1, 1, 1]]}');

describe('truth from the command line', () => {
  it('says why a version is served, or at which link it is not', async () => {
    const served = await run('endpoint', 'why', 'text/scale');
    expect(served).toMatchObject({ code: 0, err: '' });
    expect(served.out).toMatch(/^ok +endpoint +endpoint text\/scale exists/m);
    expect(served.out).toMatch(/^ok +server +server .* serves it/m);
    expect(served.out).toContain('Served: version 1 of endpoint text/scale is served and gets 100 % of the traffic.');
    await upload(2);
    const draft = await run('endpoint', 'why', 'text/scale');
    expect(draft.code).toBe(1);
    expect(draft.out).toMatch(/^FAILED +rule +version 2 is a draft/m);
    expect(draft.out).toContain('-> "perch model publish nlp/scale@2"');
    const asked = await run('endpoint', 'why', 'text/scale', '--version', '9', '-o', 'json');
    expect(asked.code).toBe(1);
    expect((JSON.parse(asked.out) as EndpointWhy).chain.at(-1)).toMatchObject({ step: 'version', state: 'failed' });
    expect((await run('endpoint', 'why', 'nobody')).code).toBe(3);
    expect((await run('endpoint', 'why', 'text/scale', '--version', 'x')).code).toBe(2);
  });

  it('shows each server with what it holds and since when', async () => {
    const shown = await run('endpoint', 'show', 'text/scale');
    expect(shown.out).toMatch(/VERSION +SERVER +WANTED +STATE +SINCE/);
    expect(shown.out).toMatch(/^1 .* held +ready +\d+ s ago/m);
    const { deployments } = await person.json<Endpoint>('endpoint', 'show', 'text/scale');
    expect(deployments[0]!.servers[0]).toMatchObject({ state: 'ready', wanted: 'held', waitsFor: null });
  });

  it('counts requests by version', async () => {
    for (let times = 0; times < 5; times += 1) expect((await infer()).code).toBe(0);
    type Rates = { version: number; requests: number; requestsPerSecond: number; p50Ms: number | null }[];
    const totals = () => person.json<Rates>('endpoint', 'stats', 'text/scale', '--totals');
    await until(async () => ((await totals())[0]?.requests ?? 0) >= 5, 20_000); // --wait asked the router too
    const counting = person.json<Rates>('endpoint', 'stats', 'text/scale', '--over', '6s');
    for (let times = 0; times < 4; times += 1) await infer();
    const [rates] = await counting;
    expect(rates).toMatchObject({ version: 1, errors: 0 });
    expect(rates!.requests).toBeGreaterThan(0);
    expect(rates!.requestsPerSecond).toBeGreaterThan(0);
    expect(rates!.p50Ms).toBeGreaterThan(0);
    expect((await run('endpoint', 'stats', 'text/scale', '--over', '1s')).code).toBe(2);
    expect((await run('endpoint', 'stats', 'text/scale', '--totals')).out).toMatch(/VERSION +REQUESTS +P50/);
  }, 60_000);

  it('tells what happened, and goes on telling', async () => {
    const logs = await run('endpoint', 'logs', 'text/scale');
    expect(logs.out).toMatch(/perch by .*: created as generation 1/);
    expect(logs.out).toContain('version 1 is ready');
    const following = person.spawn(['endpoint', 'logs', 'text/scale', '--follow', '--since', '1ms']);
    let text = '';
    following.stdout?.on('data', (chunk) => {
      text += chunk;
    });
    expect((await run('endpoint', 'stop', 'text/scale', '--reason', 'night', '--wait')).code).toBe(0);
    await until(async () => text.includes('stopped (night)'), 20_000);
    following.kill();
  });

  it('is stopped: requests are told so, and start brings the same version back', async () => {
    const refused = await infer();
    expect(refused.code).not.toBe(0);
    expect(refused.err + refused.out).toContain('endpoint text/scale is stopped');
    const why = await run('endpoint', 'why', 'text/scale');
    expect(why).toMatchObject({ code: 1 });
    expect(why.out).toContain('-> "perch endpoint start text/scale"');
    expect(await run('endpoint', 'start', 'text/scale', '--wait')).toMatchObject({
      code: 0,
      out: 'Endpoint text/scale serves version 1 again.\n',
    });
    expect(JSON.parse((await infer()).out)).toEqual({ y: [[1, 1, 1, 1]] });
  });

  it('deletes what nobody uses, and collects what is left', async () => {
    const used = await run('model', 'delete', 'nlp/scale@1');
    expect(used).toMatchObject({ code: 4, err: expect.stringContaining('in use by endpoint text/scale (version 1)') });
    expect(await run('model', 'delete', 'nlp/scale@2')).toMatchObject({
      code: 0,
      out: expect.stringContaining('is deleted'),
    });
    expect((await run('model', 'delete', 'nlp/scale@2')).code).toBe(3);
    expect((await run('model', 'delete', 'nlp/scale')).code).toBe(2);
    expect((await run('model', 'delete', 'nlp/scale', '--all-versions')).code).toBe(4);
    const report = await person.json<GarbageReport>('gc', '--dry-run');
    expect(report).toMatchObject({ dryRun: true, sizeBytes: 0 });
    expect(await run('gc')).toMatchObject({ code: 0, out: 'Nothing to remove.\n' });
    expect((await run('gc', '--older-than', '5m')).code).toBe(2);
  });

  it('examines the installation', async () => {
    const well = await person.json<Diagnosis>('doctor');
    expect(well.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
    const named = new Set(well.findings.map(({ what }) => what));
    for (const what of ['control plane', 'database', 'clock', 'store', 'keys', 'endpoints'])
      expect(named).toContain(what);
    await person.json('endpoint', 'add', 'text/lost', '--model', 'nlp/scale', '--pool', 'gpu');
    await until(async () => (await run('doctor')).code === 1, 20_000);
    const ill = await run('doctor');
    expect(ill.out).toMatch(/^ERROR +pool gpu +has no live server, and text\/lost want it/m);
    expect(ill.out).toContain('perch key join --server --pool gpu');
    expect(await run('__complete', '--', 'endpoint', 'w')).toMatchObject({ out: 'why\n' });
  });
});
