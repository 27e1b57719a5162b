import { createServer, type Server, type Socket } from 'node:net';
import { createTritonControl } from '@perch/triton/control';
import { ConnectionFault, type InferenceTransport, type InferRequest, TritonFault } from '@perch/triton/inference';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addModel, floats, gatherModel, heavyModel, identityModel, longs, scaleModel } from '../support/onnx.ts';
import { freePorts, type ModelServer, putModel } from '../support/real-triton.ts';

const timeoutMs = 30_000;
const config = (tensors: string, batch = 8) =>
  `platform: "onnxruntime_onnx" max_batch_size: ${batch} version_policy { all {} } instance_group { count: 1 kind: KIND_CPU } ${tensors}`;
const tensor = (kind: 'input' | 'output', name: string, type: string, dims: string) =>
  `${kind} { name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ] }`;
const floatsOf = (bytes: Uint8Array): number[] => [...new Float32Array(new Uint8Array(bytes).buffer)];
const scale = (rows: number[], modelName = 'scale'): InferRequest => ({
  modelName,
  inputs: [{ name: 'x', datatype: 'FP32', shape: [rows.length / 4, 4], bytes: floats(...rows) }],
});
const heavy = (width: number): InferRequest => ({
  modelName: 'heavy',
  inputs: [{ name: 'x', datatype: 'FP32', shape: [8, width], bytes: new Uint8Array(8 * width * 4) }],
});

async function faultOf(work: Promise<unknown>): Promise<TritonFault> {
  const fault = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(TritonFault);
  return fault as TritonFault;
}

/** What the router may rely on, whatever way it takes to whichever model server. */
export function inferenceContract(
  name: string,
  start: () => Promise<ModelServer>,
  make: () => InferenceTransport,
): void {
  describe(name, () => {
    let server: ModelServer;
    let transport: InferenceTransport;

    beforeAll(async () => {
      server = await start();
      transport = make();
      const put = async (model: string, text: string, ...versions: Uint8Array[]) => {
        const numbered = Object.fromEntries(versions.map((bytes, index) => [index + 1, bytes]));
        await putModel(server.repository, model, { config: config(text), versions: numbered });
        const control = createTritonControl({ grpc: server.grpc, timeoutMs });
        await control.load(model, { timeoutMs }).finally(() => control.close());
      };
      const fp32 = (kind: 'input' | 'output', one: string, dims: string) => tensor(kind, one, 'FP32', dims);
      await put('scale', fp32('input', 'x', '4') + fp32('output', 'y', '4'), scaleModel(3));
      await put('versions', fp32('input', 'x', '4') + fp32('output', 'y', '4'), scaleModel(5), scaleModel(7));
      await put(
        'add',
        ['a', 'b'].map((one) => fp32('input', one, '-1')).join('') +
          ['sum', 'difference'].map((one) => fp32('output', one, '-1')).join(''),
        addModel(),
      );
      await put(
        'words',
        tensor('input', 'x', 'STRING', '-1') + tensor('output', 'y', 'STRING', '-1'),
        identityModel('BYTES'),
      );
      await put('gather', tensor('input', 'x', 'INT64', '1') + fp32('output', 'y', '1'), gatherModel());
      await put('heavy', fp32('input', 'x', '512') + fp32('output', 'y', '512'), heavyModel(400));
    });
    afterAll(async () => {
      await transport?.close();
      await server?.remove();
    });

    it('infers, and names what ran', async () => {
      const reply = await transport.infer(server, scale([1, 2, 3, 4]), { timeoutMs });
      expect(reply).toMatchObject({ modelName: 'scale', modelVersion: '1' });
      expect(reply.outputs).toMatchObject([{ name: 'y', datatype: 'FP32', shape: [1, 4] }]);
      expect(floatsOf(reply.outputs[0]!.bytes)).toEqual([3, 6, 9, 12]);
    });

    it('keeps 200 requests of different shapes apart, 20 at a time', async () => {
      const results: number[][] = [];
      const wanted: number[][] = [];
      let next = 0;
      const worker = async () => {
        for (let i = next++; i < 200; i = next++) {
          const rows = Array.from({ length: 4 * ((i % 8) + 1) }, (_, at) => i + at);
          const { outputs } = await transport.infer(server, scale(rows), { timeoutMs });
          results[i] = floatsOf(outputs[0]!.bytes);
          wanted[i] = rows.map((value) => value * 3);
        }
      };
      await Promise.all(Array.from({ length: 20 }, worker));
      expect(results).toEqual(wanted);
    });

    it('asks for the version it is told, and for the highest without', async () => {
      const rows = scale([1, 2, 3, 4], 'versions');
      const json = { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }] };
      for (let turn = 0; turn < 3; turn += 1)
        for (const [modelVersion, ran, factor] of [
          ['1', '1', 5],
          ['2', '2', 7],
          ['', '2', 7],
        ] as const) {
          const reply = await transport.infer(server, { ...rows, modelVersion }, { timeoutMs });
          expect([reply.modelVersion, floatsOf(reply.outputs[0]!.bytes)[3]]).toEqual([ran, 4 * factor]);
          const infer = { method: 'POST' as const, model: 'versions', modelVersion, action: '/infer' as const };
          const body = [Buffer.from(JSON.stringify(json))];
          const passed = await transport.forward(server, { ...infer, headers: {}, body }, { timeoutMs });
          expect(JSON.parse(passed.body.toString())).toMatchObject({
            model_version: ran,
            outputs: [{ data: [factor, 2 * factor, 3 * factor, 4 * factor] }],
          });
        }
    });

    it('asks for one of several outputs, carries ids, parameters and texts', async () => {
      const side = (name: string, value: number) => ({
        name,
        datatype: 'FP32',
        shape: [1, 2],
        bytes: floats(value, value),
      });
      const one = await transport.infer(
        server,
        {
          modelName: 'add',
          id: 'id-1',
          parameters: { mine: 'x' },
          inputs: [side('a', 5), side('b', 2)],
          outputs: [{ name: 'difference' }],
        },
        { timeoutMs },
      );
      expect([one.id, one.outputs.map((output) => output.name)]).toEqual(['id-1', ['difference']]);
      expect(floatsOf(one.outputs[0]!.bytes)).toEqual([3, 3]);
      const text = Buffer.from([3, 0, 0, 0, ...Buffer.from('é!'), 0, 0, 0, 0]);
      const words = await transport.infer(
        server,
        { modelName: 'words', inputs: [{ name: 'x', datatype: 'BYTES', shape: [1, 2], bytes: text }] },
        { timeoutMs },
      );
      expect(Buffer.from(words.outputs[0]!.bytes).equals(text)).toBe(true);
    });

    it.each([
      ['an unknown model', scale([1, 2, 3, 4], 'nothing'), 'unknown_model'],
      ['an unknown version', { ...scale([1, 2, 3, 4]), modelVersion: '9' }, 'unknown_model'],
      ['a wrong name', { ...scale([1, 2, 3, 4]), inputs: [{ ...scale([1, 2, 3, 4]).inputs[0]!, name: 'z' }] }, 'input'],
      [
        'a wrong shape',
        { ...scale([1, 2, 3, 4]), inputs: [{ ...scale([1, 2, 3, 4]).inputs[0]!, shape: [2, 2] }] },
        'input',
      ],
      [
        'a wrong type',
        { ...scale([1, 2, 3, 4]), inputs: [{ ...scale([1, 2, 3, 4]).inputs[0]!, datatype: 'INT32' }] },
        'input',
      ],
      [
        'too few bytes',
        { ...scale([1, 2, 3, 4]), inputs: [{ ...scale([1, 2, 3, 4]).inputs[0]!, bytes: floats(1) }] },
        'input',
      ],
      ['a batch that is too large', scale(Array(36).fill(1)), 'input'],
      [
        'a run that fails',
        { modelName: 'gather', inputs: [{ name: 'x', datatype: 'INT64', shape: [1, 1], bytes: longs(99) }] },
        'model',
      ],
    ] as [string, InferRequest, string][])('tells %s', async (_what, request, kind) => {
      const fault = await faultOf(transport.infer(server, request, { timeoutMs }));
      expect(fault.kind).toBe(kind);
      expect(fault.text.length).toBeGreaterThan(5);
      await transport.infer(server, scale([1, 2, 3, 4]), { timeoutMs });
    });

    it('gives up when the time is over, and when the caller goes away', async () => {
      expect((await faultOf(transport.infer(server, heavy(512), { timeoutMs: 1 }))).kind).toBe('deadline');
      const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
      const work = faultOf(transport.infer(server, heavy(512), { timeoutMs, cancellation }));
      expect(cancellation.onCancel).toBeTypeOf('function');
      cancellation.onCancel!();
      expect((await work).kind).toBe('cancelled');
      expect(cancellation.onCancel).toBeUndefined();
      await transport.infer(server, scale([1, 2, 3, 4]), { timeoutMs });
    });

    it('says that nothing was sent when nobody listens', async () => {
      const [http, grpc] = await freePorts(2);
      const nobody = { http: `127.0.0.1:${http}`, grpc: `127.0.0.1:${grpc}` };
      const fault = await faultOf(transport.infer(nobody, scale([1, 2, 3, 4]), { timeoutMs: 2_000 }));
      expect([fault.kind, (fault as ConnectionFault).reached]).toEqual(['connection', 'nothing']);
    });

    it('says that a request was sent when the connection ends without a reply', async () => {
      const sockets = new Set<Socket>();
      const silent: Server = createServer((socket) => {
        sockets.add(socket);
        socket.on('error', () => undefined);
        socket.once('data', () => setTimeout(() => socket.destroy(), 20));
      });
      await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
      const at = `127.0.0.1:${(silent.address() as { port: number }).port}`;
      const fault = await faultOf(transport.infer({ http: at, grpc: at }, scale([1, 2, 3, 4]), { timeoutMs: 5_000 }));
      expect(fault).toBeInstanceOf(ConnectionFault);
      for (const socket of sockets) socket.destroy();
      silent.close();
    });

    it('passes bodies of /v2 on as they are', async () => {
      const json = JSON.stringify({
        inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], parameters: { binary_data_size: 16 } }],
        outputs: [{ name: 'y', parameters: { binary_data: true } }],
      });
      const headers = { 'inference-header-content-length': String(json.length) };
      const body = [Buffer.from(json), floats(1, 2), floats(3, 4)];
      const infer = { method: 'POST' as const, model: 'scale', action: '/infer' as const };
      const reply = await transport.forward(server, { ...infer, headers, body }, { timeoutMs });
      expect(floatsOf(reply.body.subarray(reply.headerLength))).toEqual([3, 6, 9, 12]);
      const get = { method: 'GET' as const, model: 'scale', headers: {}, body: [] };
      expect(
        JSON.parse((await transport.forward(server, { ...get, action: '/config' }, { timeoutMs })).body.toString()),
      ).toMatchObject({ name: 'scale' });
      expect(
        (await faultOf(transport.forward(server, { ...get, model: 'nothing', action: '/ready' }, { timeoutMs }))).kind,
      ).toBe('not_ready');
      const broken = await faultOf(
        transport.forward(server, { ...infer, headers: {}, body: [Buffer.from('{')] }, { timeoutMs }),
      );
      expect(broken.text).toMatch(/failed to parse the request JSON|JSON/);
    });

    it('goes on after the server was killed and came back', async () => {
      await server.stop('SIGKILL');
      expect((await faultOf(transport.infer(server, scale([1, 2, 3, 4]), { timeoutMs: 2_000 }))).kind).toBe(
        'connection',
      );
      await server.restart();
      const control = createTritonControl({ grpc: server.grpc, timeoutMs });
      await control.load('scale', { timeoutMs }).finally(() => control.close());
      const deadline = Date.now() + 20_000;
      for (;;) {
        const reply = await transport.infer(server, scale([1, 2, 3, 4]), { timeoutMs: 2_000 }).catch((error) => error);
        if (!(reply instanceof Error)) return;
        if (Date.now() > deadline) throw reply;
        await new Promise((done) => setTimeout(done, 50));
      }
    });
  });
}
