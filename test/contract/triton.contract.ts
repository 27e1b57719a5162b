import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseGolden } from '@perch/contracts';
import { WarmUpClient } from '@perch/sync';
import { createTritonControl, type TritonControl, TritonFault } from '@perch/triton/control';
import { GrpcTransport, HttpTransport, type InferenceTransport, type InferRequest } from '@perch/triton/inference';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  addModel,
  corruptModel,
  floats,
  gatherModel,
  heavyModel,
  identityModel,
  longs,
  scaleModel,
  unknownOperatorModel,
} from '../support/onnx.ts';
import { type ModelFiles, type ModelServer, putModel } from '../support/real-triton.ts';

const timeoutMs = 30_000;
/** Ending a Python back-end's process takes a second or two on a busy machine. */
const soon = { timeout: 30_000 };
const cpu = 'instance_group { count: 1 kind: KIND_CPU }';
const scaleConfig = `platform: "onnxruntime_onnx" max_batch_size: 8 ${cpu}
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }`;

interface InferAnswer {
  error: string;
  model_version: string;
  outputs: { data: unknown[] }[];
}
const floatsOf = (bytes: Uint8Array): number[] => [...new Float32Array(new Uint8Array(bytes).buffer)];
const faultOf = async (work: Promise<unknown>): Promise<TritonFault> => {
  const fault = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(TritonFault);
  return fault as TritonFault;
};

/** What every server that the agent and the router talk to must do: a real Triton and the embedded engine alike. */
export function tritonContract(name: string, start: () => Promise<ModelServer>): void {
  describe(`${name} as a server of Triton's protocol`, () => {
    let server: ModelServer;
    let control: TritonControl;
    const http = new HttpTransport();
    const grpc = new GrpcTransport();

    beforeAll(async () => {
      server = await start();
      control = createTritonControl({ grpc: server.grpc, timeoutMs });
    });
    afterAll(async () => {
      control?.close();
      await Promise.all([http.close(), grpc.close()]);
      await server?.remove();
    });

    const put = (model: string, files: ModelFiles) => putModel(server.repository, model, files);
    const load = async (model: string, files: ModelFiles) => {
      await put(model, files);
      await control.load(model, { timeoutMs });
    };
    const scale = (model: string, factor: number, config = scaleConfig) =>
      load(model, { config, versions: { 1: scaleModel(factor) } });
    const entry = async (model: string, version = '1') =>
      (await control.index()).find((one) => one.name === model && (one.version === version || one.version === ''));
    const post = (path: string, body: string | Uint8Array, headers: Record<string, string> = {}) =>
      fetch(`http://${server.http}${path}`, { method: 'POST', body, headers });
    const get = (path: string) => fetch(`http://${server.http}${path}`);
    const inferJson = async (model: string, body: unknown) => {
      const answer = await post(`/v2/models/${model}/infer`, typeof body === 'string' ? body : JSON.stringify(body));
      return { status: answer.status, body: (await answer.json()) as InferAnswer };
    };
    const x = (data: unknown[], shape: number[], more: object = {}) => ({
      inputs: [{ name: 'x', datatype: 'FP32', shape, data, ...more }],
    });
    const raw = (modelName: string, ...rows: number[]): InferRequest => ({
      modelName,
      inputs: [{ name: 'x', datatype: 'FP32', shape: [rows.length / 4, 4], bytes: floats(...rows) }],
    });

    describe('health and metadata', () => {
      it('says that it is live and ready, over both ports', async () => {
        expect(await control.live()).toBe(true);
        expect(await control.ready()).toBe(true);
        expect((await get('/v2/health/live')).status).toBe(200);
        expect((await get('/v2/health/ready')).status).toBe(200);
      });

      it('names itself, its version and what it can', async () => {
        const metadata = await control.serverMetadata();
        expect(metadata.version).toBe('2.51.0');
        expect(metadata.extensions).toEqual(
          expect.arrayContaining(['model_repository', 'binary_tensor_data', 'statistics']),
        );
        expect(await (await get('/v2')).json()).toEqual(metadata);
      });

      it('describes a model alike over both ports, batch dimension included', async () => {
        await scale('described', 2);
        const metadata = await control.modelMetadata('described');
        expect(metadata).toEqual({
          name: 'described',
          versions: ['1'],
          platform: 'onnxruntime_onnx',
          inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
          outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 4] }],
        });
        expect(await (await get('/v2/models/described/versions/1')).json()).toEqual(metadata);
        expect(await control.modelReady('described')).toBe(true);
        expect((await get('/v2/models/described/ready')).status).toBe(200);
        const config = await control.modelConfig('described');
        expect(config).toMatchObject({ name: 'described', max_batch_size: 8, input: [{ name: 'x', dims: [4] }] });
        expect(await (await get('/v2/models/described/config')).json()).toMatchObject({
          name: 'described',
          max_batch_size: 8,
          input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [4], optional: false }],
          parameters: {},
        });
      });

      it('completes a configuration from the graph: a model with free first sizes batches', async () => {
        await load('completed', { versions: { 1: addModel() } });
        const config = await control.modelConfig('completed');
        expect(config.max_batch_size).toBe(4);
        expect(config.dynamic_batching).toBeDefined();
        expect(config.input).toMatchObject([
          { name: 'a', data_type: 'TYPE_FP32', dims: [-1] },
          { name: 'b', data_type: 'TYPE_FP32', dims: [-1] },
        ]);
        expect((await control.modelMetadata('completed')).outputs.map((output) => output.name)).toEqual([
          'sum',
          'difference',
        ]);
      });

      it('takes given dims as they stand where max_batch_size is 0', async () => {
        const tensors = scaleConfig.replace('max_batch_size: 8', '').replaceAll('[ 4 ]', '[ -1, 4 ]');
        await scale('as-it-stands', 3, tensors);
        expect((await control.modelMetadata('as-it-stands')).inputs[0]!.shape).toEqual([-1, 4]);
        expect((await control.modelConfig('as-it-stands')).max_batch_size ?? 0).toBe(0);
        expect(await inferJson('as-it-stands', x([1, 2, 3, 4, 5, 6, 7, 8], [2, 4]))).toMatchObject({
          status: 200,
          body: { outputs: [{ shape: [2, 4], data: [3, 6, 9, 12, 15, 18, 21, 24] }] },
        });
      });

      it('answers 404 and 405 to what it does not know', async () => {
        expect((await get('/v2/nothing')).status).toBe(404);
        expect((await get('/v2/health/live/')).status).toBe(404);
        expect((await get('/v2/models/described/infer')).status).toBe(405);
        expect((await post('/v2', '')).status).toBe(405);
      });
    });

    describe('inference', () => {
      const transports: [string, InferenceTransport][] = [
        ['HTTP binary', http],
        ['gRPC raw', grpc],
      ];

      // Together, because a load on a real Triton is mostly waiting.
      beforeAll(async () => {
        const identities = (['BYTES', 'INT64', 'BOOL', 'UINT8', 'FP64', 'FP16'] as const).map((datatype) =>
          load(`identity-${datatype.toLowerCase()}`, { versions: { 1: identityModel(datatype) } }),
        );
        await Promise.all([scale('scale', 3), load('adder', { versions: { 1: addModel() } }), ...identities]);
      });

      it('answers JSON with JSON, and echoes the id', async () => {
        const answer = await inferJson('scale', { id: 'a-1', ...x([1, 2, 3, 4], [1, 4]) });
        expect(answer).toEqual({
          status: 200,
          body: {
            id: 'a-1',
            model_name: 'scale',
            model_version: '1',
            outputs: [{ name: 'y', datatype: 'FP32', shape: [1, 4], data: [3, 6, 9, 12] }],
          },
        });
        const nested = await inferJson('scale', x([[1, 2, 3, 4], [5, 6, 7, 8]], [2, 4])); // biome-ignore format: two rows
        expect(nested.body.outputs[0]!.data).toEqual([3, 6, 9, 12, 15, 18, 21, 24]);
      });

      it.each(transports)('%s carries tensors as bytes, both ways', async (_kind, transport) => {
        const answer = await transport.infer(
          server,
          { ...raw('scale', 1, 2, 3, 4, 5, 6, 7, 8), id: 'b' },
          { timeoutMs },
        );
        expect(answer).toMatchObject({ modelName: 'scale', modelVersion: '1' });
        expect(answer.outputs).toHaveLength(1);
        expect(answer.outputs[0]).toMatchObject({ name: 'y', datatype: 'FP32', shape: [2, 4] });
        expect(floatsOf(answer.outputs[0]!.bytes)).toEqual([3, 6, 9, 12, 15, 18, 21, 24]);
      });

      it.each(transports)(
        '%s returns the outputs that were asked for, all of them by default',
        async (_kind, transport) => {
          const inputs = ['a', 'b'].map((name) => ({ name, datatype: 'FP32', shape: [1, 2], bytes: floats(5, 7) }));
          const all = await transport.infer(server, { modelName: 'adder', inputs }, { timeoutMs });
          expect(all.outputs.map((output) => [output.name, floatsOf(output.bytes)])).toEqual([
            ['sum', [10, 14]],
            ['difference', [0, 0]],
          ]);
          const one = await transport.infer(
            server,
            { modelName: 'adder', inputs, outputs: [{ name: 'difference' }] },
            { timeoutMs },
          );
          expect(one.outputs.map((output) => output.name)).toEqual(['difference']);
        },
      );

      it('takes a raw request, and answers binary', async () => {
        const answer = await post('/v2/models/scale/infer', floats(1, 2, 3, 4), {
          'Inference-Header-Content-Length': '0',
        });
        expect(answer.status).toBe(200);
        const head = Number(answer.headers.get('Inference-Header-Content-Length'));
        const bytes = new Uint8Array(await answer.arrayBuffer());
        expect(JSON.parse(Buffer.from(bytes.subarray(0, head)).toString())).toMatchObject({
          outputs: [{ shape: [1, 4], parameters: { binary_data_size: 16 } }],
        });
        expect(floatsOf(bytes.subarray(head))).toEqual([3, 6, 9, 12]);
      });

      it('takes a packed body', async () => {
        const { gzipSync } = await import('node:zlib');
        const body = gzipSync(JSON.stringify(x([1, 2, 3, 4], [1, 4])));
        const answer = await post('/v2/models/scale/infer', body, { 'Content-Encoding': 'gzip' });
        expect(answer.status).toBe(200);
        expect(await answer.json()).toMatchObject({ outputs: [{ data: [3, 6, 9, 12] }] });
      });

      it.each([
        ['BYTES', ['äb', ''], Buffer.from([3, 0, 0, 0, 0xc3, 0xa4, 0x62, 0, 0, 0, 0])],
        ['INT64', [-5, 7], longs(-5, 7)],
        ['BOOL', [true, false], new Uint8Array([1, 0])],
        ['UINT8', [0, 255], new Uint8Array([0, 255])],
        ['FP64', [0.1, -2], new Uint8Array(new Float64Array([0.1, -2]).buffer)],
        ['FP16', undefined, new Uint8Array([0, 0x3c, 0, 0x40])],
      ] as const)('keeps %s as it is', async (datatype, data, bytes) => {
        const model = `identity-${datatype.toLowerCase()}`;
        const inputs = [{ name: 'x', datatype, shape: [1, 2], bytes }];
        for (const [, transport] of transports) {
          const answer = await transport.infer(server, { modelName: model, inputs }, { timeoutMs });
          expect(Buffer.from(answer.outputs[0]!.bytes).toString('hex')).toBe(Buffer.from(bytes).toString('hex'));
        }
        const json = await inferJson(model, { inputs: [{ name: 'x', datatype, shape: [1, 2], data: data ?? [1, 2] }] });
        if (data) expect(json.body.outputs[0]!.data).toEqual(data);
        else
          expect(json).toMatchObject({
            status: 400,
            body: { error: expect.stringMatching(/FP16 data via JSON is not supported/) },
          });
      });

      it('is asked golden requests of FP16 in binary, though they are written as numbers', async () => {
        const tensor = (name: string, data: number[]) => ({ name, datatype: 'FP16', shape: [1, 3], data });
        const { outputs: declared } = await control.modelMetadata('identity-fp16');
        const prove = (wanted: number[]) => {
          const golden = { request: { inputs: [tensor('x', [0.3, -2, 1_000])] }, outputs: [tensor('y', wanted)] };
          const read = parseGolden(JSON.stringify(golden), 'golden/a.json');
          return new WarmUpClient(http, server).prove('identity-fp16', read, declared, AbortSignal.timeout(timeoutMs));
        };
        expect(await prove([0.3, -2, 1_000])).toBeUndefined();
        expect(await prove([0.3, 2, 1_000])).toBe('output y differs at [0,1]: wanted 2, got -2');
      });
    });

    describe('requests it refuses', () => {
      beforeAll(async () => {
        const pair = load('strict-pair', { versions: { 1: addModel() } });
        const table = load('strict-table', { versions: { 1: gatherModel() } });
        await Promise.all([scale('strict', 1), pair, table]);
      });

      it.each<[string, string, unknown, number, RegExp]>([
        ['a wrong shape', 'strict', x([1, 2, 3], [1, 3]), 400, /^\[request id: <id_unknown>\] unexpected shape for input 'x' for model 'strict'\. Expected \[-1,4\], got \[1,3\]/],
        ['no batch dimension', 'strict', { id: 'q', ...x([1, 2, 3, 4], [4]) }, 400, /^\[request id: q\] unexpected shape for input 'x'.*got \[4\].*max_batch_size/],
        ['a batch over the maximum', 'strict', x(new Array(36).fill(1), [9, 4]), 400, /inference request batch-size must be <= 8 for 'strict'/],
        ['a wrong name', 'strict', { inputs: [{ name: 'z', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }] }, 400, /unexpected inference input 'z' for model 'strict'/],
        ['a wrong type', 'strict', { inputs: [{ name: 'x', datatype: 'INT32', shape: [1, 4], data: [1, 2, 3, 4] }] }, 400, /inference input 'x' data-type is 'INT32', but model 'strict' expects 'FP32'/],
        ['an unknown type', 'strict', { inputs: [{ name: 'x', datatype: 'FLOAT', shape: [1, 4], data: [1, 2, 3, 4] }] }, 400, /invalid datatype for input x/],
        ['an unknown output', 'strict', { ...x([1, 2, 3, 4], [1, 4]), outputs: [{ name: 'q' }] }, 400, /unexpected inference output 'q' for model 'strict'/],
        ['a missing input', 'strict-pair', { inputs: [{ name: 'a', datatype: 'FP32', shape: [1, 1], data: [1] }] }, 400, /expected 2 inputs but got 1 inputs for model 'strict-pair'. Got input\(s\) \['a'\], but missing required input\(s\) \['b'\]/],
        ['an input twice', 'strict', { inputs: [x([1, 2, 3, 4], [1, 4]).inputs[0], x([1, 2, 3, 4], [1, 4]).inputs[0]] }, 400, /input 'x' already exists in request/],
        ['unequal batches', 'strict-pair', { inputs: [{ name: 'a', datatype: 'FP32', shape: [1, 1], data: [1] }, { name: 'b', datatype: 'FP32', shape: [2, 1], data: [1, 2] }] }, 400, /batch size does not match other inputs for 'strict-pair'/],
        ['data short of its shape', 'strict', x([1, 2, 3], [1, 4]), 500, /Unable to parse 'data': Shape does not match true shape of 'data' field/],
        ['data of another kind', 'strict', x(['1', 2, 3, 4], [1, 4]), 500, /Unable to parse 'data'/],
        ['no data', 'strict', x([], [1, 4], { data: undefined }), 400, /Input must set only one of the following fields.*no field is set/],
        ['a shape that is none', 'strict', x([1, 2, 3, 4], [-1, 4]), 500, /Unable to parse 'shape'/],
        ['no inputs', 'strict', {}, 500, /Unable to parse 'inputs'/],
        ['broken JSON', 'strict', '{"inputs": [', 500, /failed to parse the request JSON buffer/],
        ['a reserved parameter', 'strict', { parameters: { triton_x: 1 }, ...x([1, 2, 3, 4], [1, 4]) }, 400, /parameter keys starting with 'triton_' are reserved/],
        ['an unknown model', 'nobody', {}, 404, /^Request for unknown model: 'nobody' is not found/],
        ['an unknown version', 'strict/versions/9', {}, 404, /^Request for unknown model: 'strict' version 9 is not found/],
        ['a fault while it computes', 'strict-table', { inputs: [{ name: 'x', datatype: 'INT64', shape: [1, 1], data: [30] }] }, 500, /indices element out of data bounds, idx=30/],
      ])('%s', async (_what, model, body, status, words) => {
        const answer = await inferJson(model, body);
        expect(answer.body.error).toMatch(words);
        expect(answer.status).toBe(status);
      }); // biome-ignore format: one row a case

      it('raw bytes of a wrong size, over HTTP and over gRPC', async () => {
        const short = {
          ...raw('strict', 1, 2, 3, 4),
          inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], bytes: floats(1, 2, 3) }],
        };
        for (const transport of [http, grpc]) {
          const fault = await faultOf(transport.infer(server, short, { timeoutMs }));
          expect(fault.kind).toBe('input');
          expect(fault.text).toMatch(/input byte size mismatch for input 'x' for model 'strict'. Expected 16, got 12/);
        }
        const header = { 'Inference-Header-Content-Length': '0' };
        const answer = await post('/v2/models/strict/infer', floats(1, 2), header);
        expect(answer.status).toBe(400);
        expect(await answer.text()).toMatch(/Expected 16, got 8/);
      });

      it('a header length beyond the body, and bytes that no input claims', async () => {
        const head = JSON.stringify(x([], [1, 4], { data: undefined, parameters: { binary_data_size: 16 } }));
        const body = Buffer.concat([Buffer.from(head), floats(1, 2, 3, 4)]);
        const lengths = (length: number) => ({ 'Inference-Header-Content-Length': String(length) });
        const beyond = await post('/v2/models/strict/infer', body, lengths(body.length + 1));
        expect([beyond.status, await beyond.text()]).toEqual([
          400,
          expect.stringMatching(/inference header size should be in range/),
        ]);
        const extra = await post(
          '/v2/models/strict/infer',
          Buffer.concat([body, Buffer.from('more')]),
          lengths(head.length),
        );
        expect([extra.status, await extra.text()]).toEqual([
          400,
          expect.stringMatching(/unexpected additional input data/),
        ]);
        const cut = await post('/v2/models/strict/infer', body.subarray(0, body.length - 4), lengths(head.length));
        expect([cut.status, await cut.text()]).toEqual([400, expect.stringMatching(/expecting 4 additional bytes/)]);
      });

      it.each<[string, InferRequest, string, RegExp]>([
        ['unknown model', raw('nobody', 1, 2, 3, 4), 'unknown_model', /Request for unknown model: 'nobody' is not found/],
        ['unknown version', { ...raw('strict', 1, 2, 3, 4), modelVersion: '9' }, 'unknown_model', /version 9 is not found/],
        ['a version that is no number', { ...raw('strict', 1, 2, 3, 4), modelVersion: 'new' }, 'input', /failed to get model version from specified version string/],
        ['a wrong shape', { modelName: 'strict', inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 3], bytes: floats(1, 2, 3) }] }, 'input', /Expected \[-1,4\], got \[1,3\]/],
      ])('%s over gRPC', async (_what, request, kind, words) => {
        const fault = await faultOf(grpc.infer(server, request, { timeoutMs }));
        expect(fault.text).toMatch(words);
        expect(fault.kind).toBe(kind);
      }); // biome-ignore format: one row a case

      it('and goes on serving', async () => {
        expect((await inferJson('strict', x([1, 2, 3, 4], [1, 4]))).status).toBe(200);
      });
    });

    describe('the repository', () => {
      it('lists a model that was never loaded by its name alone', async () => {
        await put('untouched', { config: scaleConfig, versions: { 1: scaleModel(1) } });
        expect(await entry('untouched')).toEqual({ name: 'untouched', version: '', state: '', reason: '' });
        expect(await control.modelReady('untouched')).toBe(false);
      });

      it('loads, unloads with the reason "unloaded", and loads again', async () => {
        await scale('to-and-fro', 2);
        expect(await entry('to-and-fro')).toMatchObject({ state: 'READY', reason: '' });
        await control.unload('to-and-fro');
        await expect.poll(() => entry('to-and-fro'), soon).toMatchObject({ state: 'UNAVAILABLE', reason: 'unloaded' });
        const fault = await faultOf(control.modelMetadata('to-and-fro'));
        expect(fault).toMatchObject({ kind: 'unknown_model' });
        expect(fault.text).toMatch(/'to-and-fro' has no available versions/);
        expect((await inferJson('to-and-fro/versions/1', x([1, 2, 3, 4], [1, 4]))).status).toBe(503);
        expect((await get('/v2/models/to-and-fro/ready')).status).toBe(400);
        await control.unload('to-and-fro');
        await control.load('to-and-fro', { timeoutMs });
        expect((await inferJson('to-and-fro', x([1, 2, 3, 4], [1, 4]))).status).toBe(200);
      });

      it('takes the unload of an unknown name as done, and refuses to load one', async () => {
        await control.unload('never-heard-of');
        const fault = await faultOf(control.load('never-heard-of'));
        expect(fault.text).toBe("failed to load 'never-heard-of', failed to poll from model repository");
        expect(fault.kind).toBe('load');
      });

      it('refuses a configuration that Triton cannot read', async () => {
        for (const [model, config] of [
          ['bad-text', `${scaleConfig} no_such_field: 1`],
          ['bad-name', `name: "another" ${scaleConfig}`],
          ['bad-batch', scaleConfig.replace('8', '-1')],
        ] as const) {
          const fault = await faultOf(load(model, { config, versions: { 1: scaleModel(1) } }));
          expect(fault.text).toBe(`failed to load '${model}', failed to poll from model repository`);
        }
      });

      it('does nothing when nothing changed on disk', async () => {
        await scale('calm', 2);
        await inferJson('calm', x([1, 2, 3, 4], [1, 4]));
        await control.load('calm');
        // Counters belong to the loaded instance: they would have begun again.
        expect((await control.statistics('calm'))[0]!.success.count).toBe(1);
      });

      it('loads new bytes of the same version when they are on disk', async () => {
        await scale('renewed', 2);
        await scale('renewed', 5);
        const answer = await inferJson('renewed', x([1, 2, 3, 4], [1, 4]));
        expect(answer.body.outputs[0]!.data).toEqual([5, 10, 15, 20]);
      });

      it.each([
        ['bytes that are no model', corruptModel(), /onnxruntime.*Protobuf parsing failed/s],
        ['an operator that does not exist', unknownOperatorModel(), /onnxruntime.*NoSuchOperator/s],
        ['no file', undefined, /there is no file 'model\.onnx'/],
      ])("fails a load with onnxruntime's words and leaves the neighbours alone: %s", async (what, bytes, words) => {
        await scale('neighbour', 4);
        const model = `broken-${what.length}`;
        const fault = await faultOf(load(model, { config: `backend: "onnxruntime" ${cpu}`, versions: { 1: bytes } }));
        expect(fault.kind).toBe('load');
        expect(fault.text).toMatch(
          new RegExp(`^load failed for model '${model}': version 1 is at UNAVAILABLE state: `),
        );
        expect(fault.text).toMatch(words);
        const shown = await entry(model);
        expect(shown).toMatchObject({ version: '1', state: 'UNAVAILABLE', reason: expect.stringMatching(words) });
        expect((await inferJson('neighbour', x([1, 2, 3, 4], [1, 4]))).body.outputs[0]!.data).toEqual([4, 8, 12, 16]);
        expect(await control.live()).toBe(true);
      });

      it('fails a load whose configuration contradicts the graph', async () => {
        const config = scaleConfig.replace('"x"', '"ids"');
        const fault = await faultOf(load('contradicted', { config, versions: { 1: scaleModel(1) } }));
        expect(fault.text).toMatch(/unexpected inference input 'ids', allowed inputs are: x/);
      });

      it('says which back-end it lacks', async () => {
        const fault = await faultOf(
          load('other-format', { config: 'platform: "tensorrt_plan"', versions: { 1: undefined } }),
        );
        expect(fault.text).toMatch(/unable to find backend library for backend 'tensorrt'/);
      });

      it('is all or nothing: one bad version drops the load, and what served goes on', async () => {
        const config = `${scaleConfig} version_policy { all {} }`;
        await load('all-or-nothing', { config, versions: { 1: scaleModel(1) } });
        const both = load('all-or-nothing', {
          config,
          versions: { 1: scaleModel(1), 2: scaleModel(2), 3: corruptModel() },
        });
        expect((await faultOf(both)).text).toMatch(/version 3 is at UNAVAILABLE state/);
        expect(await control.modelReady('all-or-nothing')).toBe(true);
        expect((await inferJson('all-or-nothing', x([1, 2, 3, 4], [1, 4]))).body).toMatchObject({
          model_version: '1',
          outputs: [{ data: [1, 2, 3, 4] }],
        });
        expect(await entry('all-or-nothing', '3')).toMatchObject({ state: 'UNAVAILABLE' });
        expect((await entry('all-or-nothing', '2'))?.state).not.toBe('READY');
      });

      it('gives a request without a version to the highest ready one, and keeps to the version policy', async () => {
        const config = (policy: string) => `${scaleConfig} version_policy { ${policy} }`;
        const versions = { 1: scaleModel(1), 2: scaleModel(2), 10: scaleModel(10) };
        await load('many', { config: config('latest { num_versions: 2 }'), versions });
        expect((await control.modelMetadata('many')).versions.sort()).toEqual(['10', '2']);
        expect((await inferJson('many', x([1, 2, 3, 4], [1, 4]))).body.model_version).toBe('10');
        expect((await inferJson('many/versions/2', x([1, 2, 3, 4], [1, 4]))).body.outputs[0]!.data).toEqual([
          2, 4, 6, 8,
        ]);
        await load('many', { config: config('specific { versions: [ 1, 99 ] }'), versions });
        await expect.poll(async () => (await control.modelMetadata('many')).versions, soon).toEqual(['1']);
        const none = await faultOf(load('many', { config: config('specific { versions: [ 77 ] }'), versions }));
        expect(none.text).toMatch(/at least one version must be available under the version policy of model 'many'/);
      });

      it('takes a configuration with the load, which stays in force until the file changes', async () => {
        await scale('overridden', 2);
        const config = JSON.stringify({
          platform: 'onnxruntime_onnx',
          max_batch_size: 2,
          input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [4] }],
          output: [{ name: 'y', data_type: 'TYPE_FP32', dims: ['4'] }],
          instance_group: [{ kind: 'KIND_CPU', count: 1 }],
        });
        const at = '/v2/repository/models/overridden/load';
        expect((await post(at, JSON.stringify({ parameters: { config } }))).status).toBe(200);
        expect((await control.modelConfig('overridden')).max_batch_size).toBe(2);
        await control.load('overridden');
        expect((await control.modelConfig('overridden')).max_batch_size).toBe(2);
        await writeFile(join(server.repository, 'overridden', 'config.pbtxt'), scaleConfig.replace('8', '6'));
        await control.load('overridden');
        expect((await control.modelConfig('overridden')).max_batch_size).toBe(6);
      });

      it('refuses load parameters that it does not know', async () => {
        const at = '/v2/repository/models/described/load';
        expect((await post(at, '{"parameters":{"config":{}}}')).status).toBe(500);
        expect((await post(at, '{"parameters":{"nonsense":"1"}}')).status).toBeGreaterThanOrEqual(400);
        expect((await post(at, '{broken')).status).toBe(500);
      });

      it('finishes accepted requests after an unload', async () => {
        await load('busy', {
          config: `backend: "onnxruntime" max_batch_size: 1 ${cpu}`,
          versions: { 1: heavyModel(40) },
        });
        const body = { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 512], data: new Array(512).fill(1) }] };
        await inferJson('busy', body);
        const asked = Array.from({ length: 12 }, () => inferJson('busy', body));
        await expect
          .poll(async () => (await control.statistics('busy'))[0]!.success.count, { ...soon, interval: 2 })
          .toBeGreaterThan(1);
        await control.unload('busy');
        const statuses = (await Promise.all(asked)).map(({ status }) => status);
        // Those that came before the unload are answered; a later one is told that the model is gone.
        expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(1);
        expect(statuses.every((status) => status === 200 || status === 404)).toBe(true);
        await expect.poll(() => entry('busy'), soon).toMatchObject({ state: 'UNAVAILABLE', reason: 'unloaded' });
      });
    });

    describe('batching, statistics and metrics', () => {
      it('puts waiting requests together, and each gets its own answer', async () => {
        const batching = 'dynamic_batching { max_queue_delay_microseconds: 50000 }';
        await scale('batched', 10, `${scaleConfig} ${batching}`);
        const answers = await Promise.all(
          Array.from({ length: 24 }, (_, i) => http.infer(server, raw('batched', i, i, i, i), { timeoutMs })),
        );
        expect(answers.map((answer) => floatsOf(answer.outputs[0]!.bytes)[0])).toEqual(answers.map((_, i) => i * 10));
        const [stats] = await control.statistics('batched');
        expect(stats).toMatchObject({ inferenceCount: 24, success: { count: 24 }, fail: { count: 0 } });
        expect(stats!.executionCount).toBeLessThan(12);
        expect(stats!.batches.some(({ batchSize }) => batchSize > 1)).toBe(true);
      });

      it('keeps requests of different inner shapes apart', async () => {
        const dims =
          'input { name: "a" data_type: TYPE_FP32 dims: [ -1 ] } input { name: "b" data_type: TYPE_FP32 dims: [ -1 ] }';
        const outputs = 'output { name: "sum" data_type: TYPE_FP32 dims: [ -1 ] }';
        const config = `backend: "onnxruntime" max_batch_size: 8 ${cpu} ${dims} ${outputs} dynamic_batching { max_queue_delay_microseconds: 20000 }`;
        await load('ragged', { config, versions: { 1: addModel() } });
        const sums = await Promise.all(
          Array.from({ length: 12 }, (_, i) => {
            const values = new Array((i % 3) + 1).fill(i);
            const inputs = ['a', 'b'].map((name) => ({
              name,
              datatype: 'FP32',
              shape: [1, values.length],
              bytes: floats(...values),
            }));
            return grpc.infer(server, { modelName: 'ragged', inputs }, { timeoutMs });
          }),
        );
        expect(sums.map((answer) => floatsOf(answer.outputs[0]!.bytes))).toEqual(
          sums.map((_, i) => new Array((i % 3) + 1).fill(2 * i)),
        );
      });

      it('lets a bad request fail alone within its batch', async () => {
        const config = `backend: "onnxruntime" max_batch_size: 8 ${cpu} dynamic_batching { max_queue_delay_microseconds: 50000 }`;
        await load('one-bad', { config, versions: { 1: gatherModel() } });
        const ask = (index: number) =>
          inferJson('one-bad', { inputs: [{ name: 'x', datatype: 'INT64', shape: [1, 1], data: [index] }] });
        const answers = await Promise.all([1, 2, 99, 3].map(ask));
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 500, 200]);
        expect(answers[3]!.body.outputs[0]!.data).toEqual([3]);
      });

      it('refuses what its queue does not hold', async () => {
        const config = `backend: "onnxruntime" max_batch_size: 1 ${cpu} dynamic_batching { default_queue_policy { max_queue_size: 1 } }`;
        await load('full', { config, versions: { 1: heavyModel(60) } });
        const body = { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 512], data: new Array(512).fill(1) }] };
        const answers = await Promise.all(Array.from({ length: 30 }, () => inferJson('full', body)));
        const refused = answers.filter(({ status }) => status === 503);
        expect(refused.length).toBeGreaterThan(0);
        expect(answers.some(({ status }) => status === 200)).toBe(true);
        for (const { body: answer } of refused) expect(answer.error).toMatch(/Exceeds maximum queue size/);
      });

      it('counts what it served, and begins anew after a reload', async () => {
        await scale('counted', 2);
        for (let i = 0; i < 3; i += 1) await inferJson('counted', x([1, 2, 3, 4, 5, 6, 7, 8], [2, 4]));
        await inferJson('counted', x([1, 2, 3], [1, 3]));
        const [stats] = await control.statistics('counted');
        expect(stats).toMatchObject({
          name: 'counted',
          version: '1',
          inferenceCount: 6,
          executionCount: 3,
          success: { count: 3 },
          fail: { count: 0 },
        });
        expect(stats!.success.ns).toBeGreaterThan(0);
        expect(stats!.lastInference).toBeGreaterThan(Date.now() - 60_000);
        const overHttp = (await (await get('/v2/models/counted/stats')).json()) as { model_stats: unknown[] };
        expect(overHttp.model_stats).toMatchObject([
          { name: 'counted', inference_count: 6, inference_stats: { success: { count: 3 } } },
        ]);
        await control.unload('counted');
        await expect.poll(() => entry('counted'), soon).toMatchObject({ state: 'UNAVAILABLE' });
        expect((await faultOf(control.statistics('counted'))).text).toMatch(
          /requested model 'counted' is not available/,
        );
        await control.load('counted', { timeoutMs });
        expect((await control.statistics('counted'))[0]!.success.count).toBe(0);
      });

      it("shows Triton's metrics", async () => {
        await scale('measured', 2);
        await inferJson('measured', x([1, 2, 3, 4, 5, 6, 7, 8], [2, 4]));
        const series = async () => (await (await fetch(`http://${server.metrics}/metrics`)).text()).split('\n');
        const text = await series();
        expect(text).toContain('nv_inference_request_success{model="measured",version="1"} 1');
        expect(text).toContain('nv_inference_count{model="measured",version="1"} 2');
        expect(text).toContain('nv_inference_exec_count{model="measured",version="1"} 1');
        expect(
          text.some((line) =>
            /^nv_inference_request_failure\{.*model="measured".*reason="BACKEND"|^nv_inference_request_failure\{.*reason="BACKEND".*model="measured"/.test(
              line,
            ),
          ),
        ).toBe(true);
        expect(
          text.some((line) => /^nv_inference_request_duration_us\{model="measured",version="1"\} [1-9]/.test(line)),
        ).toBe(true);
        expect(text.some((line) => line.startsWith('nv_cpu_memory_total_bytes '))).toBe(true);
        await control.unload('measured');
        await expect
          .poll(
            async () => (await series()).some((line) => line.startsWith('nv_inference_count{model="measured"')),
            soon,
          )
          .toBe(false);
      });
    });

    describe('a crash', () => {
      it('is told as a lost connection, and the server that comes back holds nothing until it is told to load', async () => {
        await scale('before-crash', 2);
        await server.stop('SIGKILL');
        const fault = await faultOf(control.index());
        expect(fault.kind).toBe('connection');
        expect(fault.message).toContain(server.grpc);
        await server.restart();
        await expect.poll(() => control.live().catch(() => false), soon).toBe(true);
        expect(await entry('before-crash')).toEqual({ name: 'before-crash', version: '', state: '', reason: '' });
        await control.load('before-crash', { timeoutMs });
        expect((await inferJson('before-crash', x([1, 2, 3, 4], [1, 4]))).status).toBe(200);
      });
    });
  });
}
