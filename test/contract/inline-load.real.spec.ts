import { createTritonControl, parseModelConfig, type TritonControl } from '@perch/triton/control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaleModel } from '../support/onnx.ts';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, startTriton } from '../support/real-triton.ts';

const name = 'scale-v1-0123456789ab';
const config = (batch: number) =>
  parseModelConfig(`name: "${name}" platform: "onnxruntime_onnx" max_batch_size: ${batch} instance_group { count: 1 kind: KIND_CPU }
  input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
  parameters { key: "intra_op_thread_count" value { string_value: "1" } }`);
const files = (factor: number) => new Map([['1/model.onnx', scaleModel(factor)]]);

describe.skipIf(missingReason('triton'))('a model that comes with the request to load it, on a real Triton', () => {
  let server: ModelServer;
  let control: TritonControl;
  beforeAll(async () => {
    server = await startTriton({
      extra: ['--grpc-restricted-protocol=model-repository,statistics:secret=sesame'],
    });
    control = createTritonControl({ grpc: server.grpc, timeoutMs: 30_000, headers: { secret: 'sesame' } });
  });
  afterAll(async () => {
    control?.close();
    await server?.remove();
  });
  const loaded = async () => (await control.statistics()).map((stats) => `${stats.name}/${stats.version}`);

  it('is served, told by the statistics and not by the index, and gone after an unload', async () => {
    await control.load(name, { inline: { config: config(8), files: files(3) } });
    expect(await control.modelReady(name)).toBe(true);
    expect((await control.modelMetadata(name)).inputs).toEqual([{ name: 'x', datatype: 'FP32', shape: [-1, 4] }]);
    expect((await control.modelConfig(name)).max_batch_size).toBe(8);
    expect(await loaded()).toEqual([`${name}/1`]);
    expect((await control.index()).map((entry) => entry.name)).not.toContain(name);
    await control.unload(name);
    const deadline = Date.now() + 10_000;
    while ((await loaded()).length > 0) expect(Date.now()).toBeLessThan(deadline);
    expect(await control.modelReady(name)).toBe(false);
  });

  it('is gone after a restart of the server', async () => {
    await control.load(name, { inline: { config: config(8), files: files(3) } });
    await server.restart();
    const deadline = Date.now() + 10_000;
    while (!(await control.live().catch(() => false))) expect(Date.now()).toBeLessThan(deadline);
    expect([await loaded(), await control.modelReady(name)]).toEqual([[], false]);
  });

  it('that is broken fails in the server’s own words', async () => {
    const inline = { config: config(8), files: new Map([['1/model.onnx', Buffer.from('no model')]]) };
    await expect(control.load(name, { inline })).rejects.toMatchObject({ kind: 'load' });
    expect(await control.modelReady(name)).toBe(false);
  });

  it('wants the header that restricted protocols were given', async () => {
    const bare = createTritonControl({ grpc: server.grpc, timeoutMs: 10_000 });
    try {
      await expect(bare.statistics()).rejects.toMatchObject({ kind: 'restricted' });
      await expect(bare.load(name)).rejects.toMatchObject({ kind: 'restricted' });
      expect(await bare.live()).toBe(true);
    } finally {
      bare.close();
    }
  });
});
