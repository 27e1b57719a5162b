import type { Tensors } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { inferAnswer, inferRequest } from './endpoint-model.client.ts';
import type { ModelSource } from './model.source.ts';
import { noModel, parseRecording, recordedModel, recordingModel } from './recording.plan.ts';

const floats = (...values: number[]): Tensors => ({
  x: { datatype: 'FP32', shape: [values.length], bytes: new Uint8Array(new Float32Array(values).buffer) },
});
const doubling: ModelSource = {
  signature: { inputs: [{ name: 'x', datatype: 'FP32', shape: [-1] }], outputs: [] },
  maxBatchSize: 8,
  infer: async ({ x }) => ({ y: { ...x!, bytes: Buffer.from(x!.bytes) } }),
  serve: async (endpoint, body) => ({ endpoint, body }),
};

describe('recordings', () => {
  it('answer what was asked when they were made, also after they were written', async () => {
    const { model, recording } = recordingModel(doubling);
    const answer = await model.infer(floats(1, 2));
    await model.serve('a/b', { text: 'x' }, undefined);
    await model.serve('a/b', Buffer.from('x'), 'image/png');
    const again = recordedModel(parseRecording(JSON.stringify(recording), 'a.recorded.json'), 'a.recorded.json');
    expect(again).toMatchObject({ signature: doubling.signature, maxBatchSize: 8 });
    expect(await again.infer(floats(1, 2))).toEqual(answer);
    expect(await again.serve('a/b', { text: 'x' }, undefined)).toEqual({ endpoint: 'a/b', body: { text: 'x' } });
    expect(await again.serve('a/b', Buffer.from('x'), undefined)).toMatchObject({ endpoint: 'a/b' });
    await expect(again.infer(floats(1, 3))).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('a.recorded.json holds no answer to x FP32[2] with these values'),
    });
    await expect(again.serve('a/c', {}, undefined)).rejects.toThrow('holds no answer of endpoint a/c');
  });

  it('that are none are refused', () => {
    expect(() => parseRecording('{', 'r.json')).toThrow('r.json: is no JSON');
    expect(() => parseRecording('{}', 'r.json')).toThrow('r.json: signature');
  });

  it('a module that asks without one is told what to do', async () => {
    await expect(noModel.infer({})).rejects.toThrow('--endpoint NAME');
    await expect(noModel.serve('a', {}, undefined)).rejects.toThrow('endpoint a');
  });
});

describe('tensors over /v2', () => {
  it('go in binary behind the JSON and come back the same way', () => {
    const tensors = {
      ...floats(1, 2),
      n: { datatype: 'INT64', shape: [1], bytes: new Uint8Array(8).fill(3) },
    } as Tensors;
    const { head, body } = inferRequest(tensors);
    const { inputs } = JSON.parse(body.subarray(0, head).toString('utf8'));
    const reply = Buffer.concat([Buffer.from(JSON.stringify({ outputs: inputs })), body.subarray(head)]);
    const length = reply.length - 16;
    const back = inferAnswer({ headers: { 'inference-header-content-length': String(length) }, body: reply });
    expect(Object.keys(back)).toEqual(['x', 'n']);
    for (const [name, { datatype, shape, bytes }] of Object.entries(tensors)) {
      expect(back[name]).toMatchObject({ datatype, shape });
      expect(Buffer.from(back[name]!.bytes).equals(Buffer.from(bytes))).toBe(true);
    }
  });
  it('outputs as JSON are refused', () => {
    const body = Buffer.from(JSON.stringify({ outputs: [{ name: 'y', datatype: 'FP32', shape: [1], data: [1] }] }));
    expect(() => inferAnswer({ headers: {}, body })).toThrow('came as JSON');
  });
});
