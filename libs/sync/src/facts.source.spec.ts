import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FactsSource, libraryVersion } from './facts.source.ts';
import { type GpuMemory, parseGpuKinds, parseGpus } from './gpu.source.ts';
import { LoadMeter } from './load-meter.ts';
import { steppedBytes, UsageSource } from './usage.source.ts';

const page = `
# TYPE nv_gpu_memory_total_bytes gauge
nv_gpu_memory_total_bytes{gpu_uuid="GPU-a"} 8.5e10
nv_gpu_memory_total_bytes{gpu_uuid="GPU-b"} 85000000000
nv_gpu_memory_used_bytes{gpu_uuid="GPU-a"} 1000000
nv_gpu_utilization{gpu_uuid="GPU-a"} 0.5
nv_inference_request_success{model="m",version="1",gpu_uuid="GPU-c"} 3
`;

describe('GPUs', () => {
  it('are read from the metrics page', () => {
    expect(parseGpus(page)).toEqual([
      { uuid: 'GPU-a', totalBytes: 85e9, usedBytes: 1e6 },
      { uuid: 'GPU-b', totalBytes: 85e9, usedBytes: 0 },
    ]);
    expect(parseGpus('nv_cpu_utilization 0.5\n')).toEqual([]);
  });

  it('get their names from the driver’s tool', () => {
    const kinds = parseGpuKinds('GPU-a, NVIDIA H200, 9.0\nGPU-b, NVIDIA A10G, 8.6\nsome warning, or other\n');
    expect(kinds.get('GPU-a')).toEqual({ name: 'NVIDIA H200', computeCapability: '9.0' });
    expect(kinds.size).toBe(2);
  });
});

describe('FactsSource', () => {
  let folder: string;
  let gpus: () => Promise<GpuMemory[]>;
  let now: number;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-facts-'));
    gpus = async () => [];
    now = 0;
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const source = (settings: Partial<ConstructorParameters<typeof FactsSource>[1]> = {}) =>
    new FactsSource(
      {
        gpus: () => gpus(),
        gpuKinds: async () => new Map([['GPU-a', { name: 'H200', computeCapability: '9.0' }]]),
        ramBytes: () => 1_000,
        now: () => now,
      },
      { host: 'node-1', supervised: false, ...settings },
    );

  it('lists back-ends by what their folders hold, and reads versions off file names', async () => {
    for (const name of ['onnxruntime', 'vllm', 'empty']) await mkdir(join(folder, name));
    await writeFile(join(folder, 'onnxruntime/libtriton_onnxruntime.so'), '');
    await writeFile(join(folder, 'onnxruntime/libonnxruntime.so.1.20.1'), '');
    await symlink('libonnxruntime.so.1.20.1', join(folder, 'onnxruntime/libonnxruntime.so.1'));
    await writeFile(join(folder, 'vllm/model.py'), '');
    expect(await source({ backendDirectory: folder }).read()).toEqual({
      host: 'node-1',
      supervised: false,
      backends: ['onnxruntime', 'vllm'],
      tensorrt: null,
      onnxruntime: '1.20.1',
      gpus: [],
      ramBytes: 1_000,
    });
  });

  it('goes by settings first, and does not know what nobody says', async () => {
    expect(await source({ backends: ['python', 'dali'], tensorrt: '10.7.0' }).read()).toMatchObject({
      backends: ['dali', 'python'],
      tensorrt: '10.7.0',
      onnxruntime: null,
    });
    expect(await source().read()).toMatchObject({ backends: null });
    expect(await source({ backendDirectory: join(folder, 'nowhere') }).read()).toMatchObject({ backends: null });
  });

  it('tells nothing before its GPUs are known, keeps them through a fault, and gives up on a closed port', async () => {
    const facts = source();
    gpus = async () => Promise.reject(new Error('closed'));
    expect(await facts.read()).toBeUndefined();
    gpus = async () => [{ uuid: 'GPU-a', totalBytes: 8, usedBytes: 0 }];
    const known = { gpus: [{ uuid: 'GPU-a', name: 'H200', computeCapability: '9.0', totalBytes: 8 }] };
    expect(await facts.read()).toMatchObject(known);
    gpus = async () => Promise.reject(new Error('closed'));
    now = 10 * 60_000;
    expect(await facts.read()).toMatchObject(known);
    const other = source();
    expect(await other.read()).toBeUndefined();
    now += 31_000;
    expect(await other.read()).toMatchObject({ gpus: [] });
  });

  it.each([
    [['libnvinfer.so.10', 'libnvinfer.so.10.7.0', 'libnvinfer_plugin.so.10.8.0'], '10.7.0'],
    [['libnvinfer.so'], null],
    [[], null],
  ])('%j: %s', (names, version) => {
    expect(libraryVersion(names, 'libnvinfer')).toBe(version);
  });
});

describe('memory of the server', () => {
  const mib = 1024 ** 2;
  it.each([
    [100 * mib, undefined, 64 * mib],
    [127 * mib, 64 * mib, 64 * mib],
    [150 * mib, 64 * mib, 64 * mib],
    [161 * mib, 64 * mib, 128 * mib],
    [100 * mib, 128 * mib, 128 * mib],
    [90 * mib, 128 * mib, 64 * mib],
  ])('%i told before as %s is told as %i', (bytes, told, result) => {
    expect(steppedBytes(bytes, told)).toBe(result);
  });

  it('is looked at again after five seconds, and unknown without a process', async () => {
    let now = 0;
    let pid: number | undefined = process.pid;
    const usage = new UsageSource({ pid: () => pid, gpus: async () => parseGpus(page), now: () => now });
    const first = await usage.report();
    expect(first!.ramBytes % (64 * mib)).toBe(0);
    expect(first!.gpuBytes).toEqual({ 'GPU-a': 0, 'GPU-b': 0 });
    expect(usage.lagMs()).toBeGreaterThan(2_000);
    pid = undefined;
    expect(await usage.report()).toBe(first);
    now = 5_000;
    expect(await usage.report()).toBeUndefined();
  });
});

describe('LoadMeter', () => {
  const { signal } = new AbortController();
  const meterOf = (figures: { ramBytes: number; gpuBytes: Record<string, number> }[], lagMs = 0) =>
    new LoadMeter({ read: async () => figures.shift(), lagMs: () => lagMs });

  it('tells what the server grew by, never less than nothing', async () => {
    const meter = meterOf([
      { ramBytes: 100, gpuBytes: { a: 10, b: 50 } },
      { ramBytes: 90, gpuBytes: { a: 30, b: 50 } },
    ]);
    await meter.begin('m', true, signal);
    expect([...meter.measuring]).toEqual(['m']);
    expect(await meter.finish('m', true, true, signal)).toEqual({ ramBytes: 0, gpuBytes: { a: 20, b: 0 } });
    expect([...meter.measuring]).toEqual([]);
  });

  it('tells nothing when the model was not alone, was never begun, or figures lag and nobody waits for them', async () => {
    const figure = { ramBytes: 1, gpuBytes: {} };
    const meter = meterOf([figure, figure]);
    await meter.begin('m', false, signal);
    expect(await meter.finish('m', false, false, signal)).toBeUndefined();
    expect(await meter.finish('n', false, true, signal)).toBeUndefined();
    const lagging = meterOf([figure, figure], 60_000);
    await lagging.begin('m', false, signal);
    expect(await lagging.finish('m', false, true, signal)).toBeUndefined();
  });

  it('survives a server that cannot be looked at', async () => {
    const meter = new LoadMeter({ read: () => Promise.reject(new Error('gone')), lagMs: () => 0 });
    await meter.begin('m', true, signal);
    expect(await meter.finish('m', true, true, signal)).toBeUndefined();
  });
});
