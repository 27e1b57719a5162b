import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@perch/platform';
import type { NamedTensor } from '@perch/triton/server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { floats, scaleModel } from '../../../../test/support/onnx.ts';
import { ModelService } from '../models/model.service.ts';
import { type OpenSession, openOnnxSession, type Session } from '../session/onnx-session.ts';
import { RepositoryService } from './repository.service.ts';

const config = `backend: "onnxruntime" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }`;
const request = { modelName: 'm', inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], bytes: floats(1, 2, 3, 4) }] };
const tensor = (name: string) => ({ name, datatype: 'FP32' as const, shape: [-1, 4] });

interface Opening {
  file: string;
  finish: (outcome?: Error) => void;
  session: Session & { closed: boolean; runs: ((outputs?: NamedTensor[]) => void)[] };
}

describe('RepositoryService', () => {
  let folder: string;
  let openings: Opening[];

  /** Sessions that open and answer when the test says so. */
  const byHand: OpenSession = (file) =>
    new Promise((resolve, reject) => {
      const session: Opening['session'] = {
        inputs: [tensor('x')],
        outputs: [tensor('y')],
        closed: false,
        runs: [],
        run: (feeds) =>
          new Promise((done) => session.runs.push((outputs) => done(outputs ?? [{ ...feeds[0]!, name: 'y' }]))),
        close: async () => {
          session.closed = true;
        },
      };
      openings.push({ file, session, finish: (error) => (error ? reject(error) : resolve(session)) });
    });
  const put = async (model: string, versions: string[], text = config) => {
    for (const version of versions) {
      await mkdir(join(folder, model, version), { recursive: true });
      await writeFile(join(folder, model, version, 'model.onnx'), scaleModel(Number(version)));
    }
    await writeFile(join(folder, model, 'config.pbtxt'), text);
  };
  const service = (openSession: OpenSession = byHand, failures: string[] = []) =>
    new RepositoryService({
      folder,
      threads: 1,
      openSession,
      logger: silentLogger,
      onFailure: (model, version, reason) => failures.push(`${model}/${version}/${reason}`),
    });
  const opened = (count: number) => expect.poll(() => openings.length).toBe(count);
  const state = async (repository: RepositoryService, version = '1') =>
    (await repository.index(false)).find((entry) => entry.name === 'm' && entry.version === version)?.state;

  beforeEach(async () => {
    openings = [];
    folder = await mkdtemp(join(tmpdir(), 'perch-repository-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('lets a second load of one model wait, and then finds nothing to do', async () => {
    await put('m', ['1']);
    const repository = service();
    const loads = Promise.all([repository.load('m', {}), repository.load('m', {})]);
    await opened(1);
    expect(await state(repository)).toBe('LOADING');
    openings[0]!.finish();
    await loads;
    expect(openings).toHaveLength(1);
    expect(await state(repository)).toBe('READY');
  });

  it('loads four models at a time, and one that hangs does not hold up the fifth for ever', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await put(name, ['1']);
    const repository = service();
    const loads = ['a', 'b', 'c', 'd', 'e'].map((name) => repository.load(name, {}));
    await opened(4);
    openings[1]!.finish();
    await opened(5);
    for (const { finish } of openings) finish();
    await Promise.all(loads);
    expect([...repository.ready()].map(([name]) => name)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('closes what a failed load had opened, and keeps what served', async () => {
    const all = `${config} version_policy { all {} }`;
    await put('m', ['1'], all);
    const repository = service();
    const first = repository.load('m', {});
    await opened(1);
    openings[0]!.finish();
    await first;
    await put('m', ['1', '2', '3'], all);
    const second = repository.load('m', {});
    second.catch(() => undefined);
    await opened(4);
    for (const { file, finish } of openings.slice(1))
      finish(file.includes('/3/') ? new Error('no such operator') : undefined);
    await expect(second).rejects.toThrow(
      "load failed for model 'm': version 3 is at UNAVAILABLE state: Internal: onnxruntime: no such operator;\n",
    );
    expect(
      openings
        .slice(1)
        .filter(({ file }) => !file.includes('/3/'))
        .every(({ session }) => session.closed),
    ).toBe(true);
    expect(openings[0]!.session.closed).toBe(false);
    expect([await state(repository, '1'), await state(repository, '2'), await state(repository, '3')]).toEqual([
      'READY',
      'UNAVAILABLE',
      'UNAVAILABLE',
    ]);
  });

  it('tries again after a failure, though nothing changed on disk', async () => {
    await put('m', ['1']);
    const repository = service();
    const failing = repository.load('m', {});
    failing.catch(() => undefined);
    await opened(1);
    openings[0]!.finish(new Error('out of memory'));
    await expect(failing).rejects.toThrow(/out of memory/);
    const again = repository.load('m', {});
    await opened(2);
    openings[1]!.finish();
    await again;
    expect(await state(repository)).toBe('READY');
  });

  it('finishes an accepted request after the unload, and may be loaded meanwhile', async () => {
    await put('m', ['1']);
    const repository = service();
    const models = new ModelService(repository);
    const load = repository.load('m', {});
    await opened(1);
    openings[0]!.finish();
    await load;
    const accepted = models.infer(request);
    await repository.unload('m', {});
    expect(await state(repository)).toBe('UNLOADING');
    await expect(models.infer(request)).rejects.toThrow(/has no available versions/);
    await expect(models.infer({ ...request, modelVersion: '1' })).rejects.toThrow(/version 1 is not at ready state/);
    const again = repository.load('m', {});
    await opened(2);
    openings[1]!.finish();
    await again;
    expect(await state(repository)).toBe('READY');
    expect(openings[0]!.session.closed).toBe(false);
    openings[0]!.session.runs[0]!();
    expect((await accepted).outputs[0]!.name).toBe('y');
    await expect.poll(() => openings[0]!.session.closed).toBe(true);
    expect(await state(repository)).toBe('READY');
  });

  it('waits, when it closes, for what was accepted', async () => {
    await put('m', ['1']);
    const repository = service();
    const load = repository.load('m', {});
    await opened(1);
    openings[0]!.finish();
    await load;
    const accepted = new ModelService(repository).infer(request);
    let closed = false;
    const closing = repository.close().then(() => {
      closed = true;
    });
    await expect.poll(() => state(repository)).toBe('UNLOADING');
    expect(closed).toBe(false);
    openings[0]!.session.runs[0]!();
    await Promise.all([accepted, closing]);
    expect(await state(repository)).toBe('UNAVAILABLE');
  });

  it('runs those of a failed batch one by one, and counts the bad one alone', async () => {
    await put('m', ['1'], `${config} dynamic_batching { max_queue_delay_microseconds: 30000 }`);
    const failures: string[] = [];
    const openSession: OpenSession = async () => ({
      inputs: [tensor('x')],
      outputs: [tensor('y')],
      close: async () => undefined,
      run: async (feeds) => {
        if (new Float32Array(feeds[0]!.bytes.buffer).includes(13)) throw new Error('thirteen');
        return [{ ...feeds[0]!, name: 'y' }];
      },
    });
    const repository = service(openSession, failures);
    await repository.load('m', {});
    const models = new ModelService(repository);
    const ask = (value: number) =>
      models.infer({ modelName: 'm', inputs: [{ ...request.inputs[0]!, bytes: floats(value, value, value, value) }] });
    const outcomes = await Promise.allSettled([1, 13, 2].map(ask));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(failures).toEqual(['m/1/BACKEND']);
    const [stats] = models.statistics('m');
    expect(stats).toMatchObject({ success: { count: 2 }, fail: { count: 1 }, inferenceCount: 2 });
  });

  it('refuses names that leave the repository', async () => {
    await expect(service().load('../m', {})).rejects.toThrow(
      "failed to load '../m', failed to poll from model repository",
    );
  });

  it('computes with onnxruntime itself', async () => {
    await put('m', ['3']);
    const repository = service(openOnnxSession);
    await repository.load('m', {});
    const answer = await new ModelService(repository).infer(request);
    expect([...new Float32Array(new Uint8Array(answer.outputs[0]!.bytes).buffer)]).toEqual([3, 6, 9, 12]);
    await repository.close();
  });
});
