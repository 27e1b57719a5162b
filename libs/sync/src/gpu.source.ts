import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Dispatcher, request } from 'undici';

/** One GPU as Triton's metrics page shows it. */
export interface GpuMemory {
  uuid: string;
  totalBytes: number;
  usedBytes: number;
}

function series(text: string, name: string): Map<string, number> {
  const found = text.matchAll(new RegExp(`^${name}\\{[^}]*gpu_uuid="([^"]+)"[^}]*\\}\\s+(\\S+)`, 'gm'));
  return new Map([...found].map(([, uuid, value]) => [uuid!, Number(value)]));
}

/** The GPUs of a metrics page, in its order: one `nv_gpu_memory_total_bytes` series each. */
export function parseGpus(metricsText: string): GpuMemory[] {
  const used = series(metricsText, 'nv_gpu_memory_used_bytes');
  const total = series(metricsText, 'nv_gpu_memory_total_bytes');
  return [...total].map(([uuid, totalBytes]) => ({ uuid, totalBytes, usedBytes: used.get(uuid) ?? 0 }));
}

/** Asks the metrics port (`host:port`) of a Triton. Throws when it does not answer in time. */
export async function readGpus(address: string, dispatcher: Dispatcher, timeoutMs = 2_000): Promise<GpuMemory[]> {
  const { statusCode, body } = await request(`http://${address}/metrics`, {
    dispatcher,
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`metrics page answered ${statusCode}`);
  return parseGpus(text);
}

/** What the driver's own tool says of a GPU. */
export interface GpuKind {
  name: string;
  /** `major.minor` */
  computeCapability: string;
}

/** By uuid, as printed by `nvidia-smi --query-gpu=uuid,name,compute_cap --format=csv,noheader`. */
export function parseGpuKinds(text: string): Map<string, GpuKind> {
  const rows = text.split('\n').map((line) => line.split(',').map((field) => field.trim()));
  return new Map(
    rows.flatMap(([uuid, name, capability]) =>
      uuid && name && capability && /^\d+\.\d+$/.test(capability)
        ? [[uuid, { name, computeCapability: capability }] as const]
        : [],
    ),
  );
}

/** Asks the driver's tool; empty when it is not there or does not answer in time. */
export async function readGpuKinds(timeoutMs = 5_000): Promise<Map<string, GpuKind>> {
  const query = ['--query-gpu=uuid,name,compute_cap', '--format=csv,noheader'];
  try {
    const { stdout } = await promisify(execFile)('nvidia-smi', query, { timeout: timeoutMs });
    return parseGpuKinds(stdout);
  } catch {
    return new Map();
  }
}
