import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Endpoint, ServerDetail } from '@perch/contracts';
import { createTritonControl } from '@perch/triton/control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adminKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { scaleModel } from '../support/onnx.ts';
import { type ModelServer, putModel, startEngine } from '../support/real-triton.ts';
import { Person } from './cli-stack.ts';

const config = `platform: "onnxruntime_onnx" max_batch_size: 8 version_policy { all {} } instance_group { count: 1 kind: KIND_CPU }
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }`;

/** The embedded engine, started by hand: to the control plane a Triton like any other. */
describe('a Triton without an agent, from the command line', () => {
  let plane: TestControlPlane;
  let engine: ModelServer;
  let person: Person;
  beforeAll(async () => {
    person = await Person.make();
    [plane, engine] = await Promise.all([startTestControlPlane(), startEngine()]);
    await putModel(engine.repository, 'resnet', { config, versions: { 1: scaleModel(2), 2: scaleModel(3) } });
    const control = createTritonControl({ grpc: engine.grpc, timeoutMs: 30_000 });
    await control.load('resnet', { timeoutMs: 30_000 }).finally(() => control.close());
  });
  afterAll(async () => {
    await plane?.close();
    await engine?.remove();
    await person?.leave();
  });
  const run = (...args: string[]) => person.run(args, { env: { PERCH_URL: plane.address, PERCH_API_KEY: adminKey } });
  const json = async <T>(...args: string[]): Promise<T> => {
    const { code, out, err } = await run(...args, '-o', 'json');
    if (code !== 0) throw new Error(`perch ${args.join(' ')} exited ${code}: ${err}`);
    return JSON.parse(out) as T;
  };
  const register = (...more: string[]) => [
    'fleet',
    'register',
    'box',
    '--url',
    `http://${engine.http}`,
    '--grpc',
    engine.grpc,
    ...more,
  ];

  it('is registered, served from, drained and forgotten', async () => {
    await writeFile(join(person.folder, 'key.txt'), 'sesame\n');
    const server = await json<ServerDetail>(...register('--label', 'room=cellar', '--header', 'owner=@key.txt', '--wait', '60s'));
    expect(server).toMatchObject({ name: 'box', live: true, labels: { room: 'cellar' }, external: { mode: 'adopt', problem: null } });
    expect(JSON.stringify(server)).not.toContain('sesame');
    expect((await run('fleet', 'servers')).out).toContain('none (adopt)');
    expect((await run('fleet', 'server', 'show', 'box')).out).toContain('resnet/2');

    const added = await json<Endpoint>('endpoint', 'add', 'pictures', '--source', 'box/resnet', '--versions', '1,2', '--traffic', 'weighted', '--weight', '1=90', '--weight', '2=10', '--timeout', '1s', '--wait', '60s');
    expect(added.status.servingVersions).toEqual([2, 1]);
    expect(added.deployments.map(({ version, weightPercent }) => [version, weightPercent])).toEqual([[2, 10], [1, 90]]);

    const used = await run('fleet', 'unregister', 'box');
    expect([used.code, used.err]).toEqual([4, expect.stringContaining('in use by pictures')]);
    await json('endpoint', 'remove', 'pictures');
    const deadline = Date.now() + 60_000;
    while ((await run('fleet', 'unregister', 'box')).code !== 0) expect(Date.now()).toBeLessThan(deadline);
    expect((await run('fleet', 'server', 'show', 'box')).code).toBe(3);
  }); // biome-ignore format: command lines

  it.each([
    ['no address', ['fleet', 'register', 'x', '--grpc', 'h:1'], 2, '--url'],
    ['https', ['fleet', 'register', 'x', '--url', 'https://h:1', '--grpc', 'h:1'], 2, '--url: wants http://host:port'],
    ['another mode', ['fleet', 'register', 'x', '--url', 'http://h:1', '--grpc', 'h:1', '--mode', 'poll'], 2, '--mode'],
    ['a header from no file', ['fleet', 'register', 'x', '--url', 'http://h:1', '--grpc', 'h:1', '--header', 'a=@nowhere'], 2, 'nowhere cannot be read'],
    ['nobody there', ['fleet', 'register', 'x', '--url', 'http://127.0.0.1:1', '--grpc', '127.0.0.1:1', '--wait', '3s'], 7, 'does not answer yet'],
    ['a source without a model', ['endpoint', 'add', 'e', '--source', 'box'], 2, 'source'],
    ['nobody to forget', ['fleet', 'unregister', 'nobody'], 3, 'nobody does not exist'],
  ])('says what is wrong: %s', async (_what, args, code, words) => {
    const ran = await run(...args);
    expect([ran.code, ran.err]).toEqual([code, expect.stringContaining(words)]);
  }); // biome-ignore format: a table
});
