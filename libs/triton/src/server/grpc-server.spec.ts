import type * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  callUnary,
  encodeInferRequest,
  healthMethods,
  type InferRequest,
  inferMethod,
  messageType,
  openChannel,
  plainOf,
  serviceMethods,
} from '../wire/index.ts';
import { bindGrpc, createGrpcServing, stopGrpc } from './grpc-server.ts';
import type { LoadParameters, ServingHost } from './model-host.ts';
import { ServingFault } from './serving-fault.ts';

const request = (modelName: string, id = ''): InferRequest => ({
  modelName,
  id,
  inputs: [{ name: 'x', datatype: 'UINT8', shape: [2], bytes: new Uint8Array([1, 2]) }],
});

describe('the gRPC service', () => {
  const loads: [string, LoadParameters][] = [];
  const unexpected: unknown[] = [];
  const host: ServingHost = {
    server: () => ({ name: 'fake', version: '9', extensions: ['a'], ready: false }),
    models: {
      isReady: (name) => name === 'm',
      metadata: (name) => ({ name, versions: ['1'], platform: 'p', inputs: [], outputs: [] }),
      config: (name) => ({ name, max_batch_size: 4, instance_group: [{ kind: 'KIND_CPU', count: 1 }] }),
      statistics: () => [],
      infer: async ({ modelName, id, inputs }) => {
        if (modelName === 'gone') throw new ServingFault('not_found', "Request for unknown model: 'gone' is not found");
        if (modelName === 'bug') throw new TypeError('a secret of the house');
        return { modelName, modelVersion: '1', id, outputs: [{ ...inputs[0]!, name: 'y' }] };
      },
    },
    repository: {
      index: async (readyOnly) => [{ name: 'm', version: '1', state: readyOnly ? 'READY' : 'LOADING', reason: '' }],
      load: async (name, parameters) => {
        loads.push([name, parameters]);
      },
      unload: async () => undefined,
    },
  };
  const server = createGrpcServing({ host, onFault: (error) => unexpected.push(error) });
  let channel: grpc.Client;
  const call = async (method: string, message: object = {}) => {
    const answer = await callUnary(channel, serviceMethods[method]!, message, { timeoutMs: 5_000 });
    return plainOf(answer.$type, answer);
  };
  const codeOf = (work: Promise<unknown>) => work.then(() => 0, (error) => [error.code, error.details]); // biome-ignore format: one row

  beforeAll(async () => {
    channel = openChannel(`127.0.0.1:${await bindGrpc(server, '127.0.0.1', 0)}`);
  });
  afterAll(async () => {
    channel.close();
    await stopGrpc(server, 1_000);
  });

  it('answers the plain methods from its host', async () => {
    expect(await call('ServerMetadata')).toEqual({ name: 'fake', version: '9', extensions: ['a'] });
    expect(await call('ServerReady')).toEqual({});
    expect(await call('ModelReady', { name: 'm' })).toEqual({ ready: true });
    expect(await call('RepositoryIndex', { ready: true })).toEqual({
      models: [{ name: 'm', version: '1', state: 'READY' }],
    });
    expect(await call('ModelConfig', { name: 'm' })).toEqual({
      config: { name: 'm', max_batch_size: 4, instance_group: [{ kind: 'KIND_CPU', count: 1 }] },
    });
    const health = await callUnary(channel, healthMethods['Check']!, {}, { timeoutMs: 5_000 });
    expect(plainOf(health.$type, health)).toEqual({ status: 'NOT_SERVING' });
  });

  it('hands the parameters of a load on', async () => {
    await call('RepositoryModelLoad', {
      model_name: 'm',
      parameters: { config: { string_param: '{}' }, 'file:1/model.onnx': { bytes_param: Buffer.from('x') } },
    });
    expect(loads).toEqual([['m', { config: '{}', 'file:1/model.onnx': Buffer.from('x') }]]);
    expect(await codeOf(call('RepositoryModelLoad', { repository_name: 'r' }))).toEqual([
      12,
      "'repository_name' specification is not supported",
    ]);
  });

  it('tells faults by status and text, and keeps unexpected ones to itself', async () => {
    const infer = (asked: InferRequest) => callUnary(channel, inferMethod, asked, { timeoutMs: 5_000 });
    expect((await infer(request('m', 'q'))).outputs[0]).toMatchObject({ name: 'y', shape: [2] });
    expect(await codeOf(infer(request('gone')))).toEqual([5, "Request for unknown model: 'gone' is not found"]);
    expect(await codeOf(infer(request('bug')))).toEqual([13, 'internal error']);
    expect(unexpected).toEqual([expect.objectContaining({ message: 'a secret of the house' })]);
    expect(await codeOf(infer({ ...request('m'), modelVersion: 'new' }))).toEqual([
      3,
      expect.stringMatching(/^failed to get model version from specified version string 'new'/),
    ]);
    const odd = { ...request('m'), inputs: [{ ...request('m').inputs[0]!, datatype: 'FLOAT' }] };
    expect(await codeOf(infer(odd))).toEqual([3, 'invalid datatype for input x']);
    expect(await codeOf(call('TraceSetting'))).toEqual([12, expect.anything()]);
  });

  it('answers every request of a stream by its id, and a fault does not end it', async () => {
    const method = serviceMethods['ModelStreamInfer']!;
    const stream = channel.makeBidiStreamRequest(method.path, encodeInferRequest, (bytes: Buffer) => bytes);
    const answers: Record<string, unknown>[] = [];
    const type = messageType('ModelStreamInferResponse');
    const ended = new Promise((resolve, reject) => {
      stream.on('data', (bytes: Buffer) => answers.push(plainOf(type, type.decode(bytes))));
      stream.on('end', resolve);
      stream.on('error', reject);
    });
    for (const asked of [request('m', 'a'), request('gone', 'b'), request('m', 'c'.repeat(300))]) stream.write(asked);
    stream.end();
    await ended;
    const byId = new Map(answers.map((answer) => [(answer['infer_response'] as { id: string }).id, answer]));
    expect([...byId.keys()].sort()).toEqual(['a', 'b', 'c'.repeat(300)]);
    expect(byId.get('a')).toMatchObject({
      infer_response: { model_name: 'm', parameters: { triton_final_response: { bool_param: true } } },
    });
    expect(byId.get('a')).not.toHaveProperty('error_message');
    expect(byId.get('b')).toMatchObject({ error_message: "Request for unknown model: 'gone' is not found" });
  });
});
