/** What only a GPU can show. Run by `npm run test:gpu`, which looks for a GPU and a Triton for it first. */
import type { DesiredModel } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MemoryCage, SupervisedSite } from '../integration/supervised-site.ts';
import { onnxModel, scaleModel } from '../support/onnx.ts';

const mib = 1024 ** 2;
const until = (check: () => unknown, timeout = 120_000) => vi.waitFor(check, { timeout, interval: 50 });
const onGpu: Partial<DesiredModel['engine']> = { instances: [{ kind: 'gpu', count: 1, gpus: [0] }] };
const command = [
  process.env['PERCH_GPU_TRITON'] ?? 'tritonserver',
  '--http-address=127.0.0.1',
  '--grpc-address=127.0.0.1',
  '--metrics-address=127.0.0.1',
  '--allow-gpu-metrics=true',
  '--metrics-interval-ms=1000',
];

/** `y = (x · A) · B` whose two weights take `weightMib` together; `x` and `y` have four columns. */
function heavyModel(weightMib: number): Uint8Array {
  const inner = (weightMib * mib) / 2 / 4 / 4;
  const weight = (name: string, dims: number[]) => ({
    name,
    type: 'FP32' as const,
    dims,
    bytes: new Uint8Array((weightMib * mib) / 2),
  });
  return onnxModel({
    inputs: [{ name: 'x', type: 'FP32', shape: ['batch', 4] }],
    outputs: [{ name: 'y', type: 'FP32', shape: ['batch', 4] }],
    nodes: [
      { op: 'MatMul', inputs: ['x', 'a'], outputs: ['h'] },
      { op: 'MatMul', inputs: ['h', 'b'], outputs: ['y'] },
    ],
    constants: [weight('a', [4, inner]), weight('b', [inner, 4])],
  });
}

describe('a server with a GPU', () => {
  let site: SupervisedSite;
  beforeAll(async () => {
    site = await SupervisedSite.open({ command });
    await site.agent.start();
  });
  afterAll(() => site?.close());

  const ready = (name: string) =>
    until(() => expect([site.stateOf(name), site.reasonOf(name)]).toEqual(['ready', null]));

  it('tells its GPUs by name and compute capability', async () => {
    await until(() => expect(site.stand.state?.facts?.gpus.length).toBeGreaterThan(0));
    const { facts, triton } = site.stand.state!;
    expect(facts!.gpus).toHaveLength(triton.gpus);
    expect(facts!.gpus[0]).toEqual({
      uuid: expect.stringMatching(/^GPU-/),
      name: expect.any(String),
      computeCapability: expect.stringMatching(/^\d+\.\d+$/),
      totalBytes: expect.any(Number),
    });
    expect(facts!.backends).toContain('onnxruntime');
  });

  it('serves from an instance group on a GPU', async () => {
    const [name, model] = site.stand.model(scaleModel(3), 1, onGpu);
    site.stand.publish({ [name]: model });
    await ready(name);
    expect(await site.infer(name)).toEqual([3, 3, 3, 3]);
    const config = (await (await fetch(`http://${site.http}/v2/models/${name}/config`)).json()) as {
      instance_group: { kind: string; gpus: number[] }[];
    };
    expect(config.instance_group).toMatchObject([{ kind: 'KIND_GPU', gpus: [0] }]);
  });

  it('measures the GPU memory of a model that comes in alone', async () => {
    const [name, model] = site.stand.model(heavyModel(512), 2, onGpu);
    site.stand.publish({ ...site.stand.document.models, [name]: { ...model, measure: true } });
    await ready(name);
    const { memory } = site.stand.state!.models[name]!;
    const [uuid] = Object.keys(memory!.gpuBytes);
    expect(uuid).toBe(site.stand.state!.facts!.gpus[0]!.uuid);
    expect(memory!.gpuBytes[uuid!]).toBeGreaterThan(400 * mib);
    expect(memory!.gpuBytes[uuid!]).toBeLessThan(4_096 * mib);
    console.log(`weights of 512 MiB measured as ${Math.round(memory!.gpuBytes[uuid!]! / mib)} MiB of GPU memory`);
  });

  it('tells in Triton’s words that a model does not fit, while the others serve', async () => {
    const limited = { ...onGpu, parameters: { gpu_mem_limit: String(64 * mib) } };
    const [name, model] = site.stand.model(heavyModel(256), 3, limited);
    const [served] = Object.keys(site.stand.document.models);
    site.stand.publish({ ...site.stand.document.models, [name]: model });
    await until(() => expect(site.stateOf(name)).toBe('failed'));
    expect(site.reasonOf(name)).toMatch(/memory|allocat/i);
    expect(site.supervision!.restarts).toBe(0);
    expect(await site.infer(served!)).toEqual([3, 3, 3, 3]);
  });
});

const cage = new MemoryCage(`perch-gpu-${process.pid}`, 8_192 * mib);
if (cage.fault) console.warn(`skipped: ${cage.fault}`);

describe.skipIf(cage.fault)('a server with a GPU that the kernel kills for memory', () => {
  afterAll(() => cage.remove());

  it('is named so, started again, and the model that grew is held back', async () => {
    const script = `echo $$ > ${cage.folder}/cgroup.procs; exec "$@"`;
    const site = await SupervisedSite.open({ command, wrapper: ['sh', '-c', script, 'sh'] });
    try {
      await site.agent.start();
      const first = "open(f'/proc/{os.getppid()}/oom_score_adj', 'w').write('1000')";
      const [name, model] = site.python(`${first}; self.ballast = bytearray(os.urandom(1)) * (16 * 2**30)`, 1);
      site.stand.publish({ [name]: model });
      await until(() => expect(site.stateOf(name)).toBe('failed'));
      expect(site.reasonOf(name)).toMatch(/^crashes its server: .*killed for memory/);
      expect(site.supervision!.lastExit).toMatch(/^killed for memory/);
    } finally {
      await site.close();
    }
  });
});
