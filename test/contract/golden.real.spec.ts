import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseGolden } from '@perch/contracts';
import { WarmUpClient } from '@perch/sync';
import { createTritonControl, type TritonControl } from '@perch/triton/control';
import { HttpTransport } from '@perch/triton/inference';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, startTriton } from '../support/real-triton.ts';

/** `y = x` without looking at it: numpy knows no BF16. */
const echo = `import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb.get_input_tensor_by_name(request, "x") for request in requests]
        return [pb.InferenceResponse([pb.Tensor.from_dlpack("y", x.to_dlpack())]) for x in tensors]
`;
const config = `backend: "python" input { name: "x" data_type: TYPE_BF16 dims: [ -1, 3 ] }
output { name: "y" data_type: TYPE_BF16 dims: [ -1, 3 ] }`;

describe.skipIf(missingReason('triton'))('golden requests to a real Triton', () => {
  let server: ModelServer;
  let control: TritonControl;
  const transport = new HttpTransport();
  beforeAll(async () => {
    server = await startTriton({ id: 'golden' });
    control = createTritonControl({ grpc: server.grpc, timeoutMs: 30_000 });
    const folder = join(server.repository, 'echo');
    await mkdir(join(folder, '1'), { recursive: true });
    await writeFile(join(folder, 'config.pbtxt'), config);
    await writeFile(join(folder, '1', 'model.py'), echo);
    await control.load('echo');
  });
  afterAll(async () => {
    control?.close();
    await transport.close();
    await server?.remove();
  });

  it('in BF16 are numbers, sent and answered in binary', async () => {
    const { outputs: declared } = await control.modelMetadata('echo');
    const tensor = (name: string, data: number[]) => ({ name, datatype: 'BF16', shape: [1, 3], data });
    const prove = (wanted: number[]) => {
      const golden = { request: { inputs: [tensor('x', [0.3, -2, 1e30])] }, outputs: [tensor('y', wanted)] };
      const read = parseGolden(JSON.stringify(golden), 'golden/a.json');
      return new WarmUpClient(transport, server).prove('echo', read, declared, AbortSignal.timeout(30_000));
    };
    expect(await prove([0.3, -2, 1e30])).toBeUndefined();
    expect(await prove([0.3, 2, 1e30])).toBe('output y differs at [0,1]: wanted 2, got -2');
  });
});
