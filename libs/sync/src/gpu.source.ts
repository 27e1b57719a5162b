import { type Dispatcher, request } from 'undici';

/** How many GPUs Triton's metrics page shows: one `nv_gpu_memory_total_bytes` series each. */
export const countGpus = (metricsText: string): number =>
  new Set([...metricsText.matchAll(/^nv_gpu_memory_total_bytes\{[^}]*gpu_uuid="([^"]+)"/gm)].map(([, uuid]) => uuid))
    .size;

/** Asks the metrics port (`host:port`) of a Triton. Throws when it does not answer in time. */
export async function readGpus(address: string, dispatcher: Dispatcher, timeoutMs = 2_000): Promise<number> {
  const { statusCode, body } = await request(`http://${address}/metrics`, {
    dispatcher,
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`metrics page answered ${statusCode}`);
  return countGpus(text);
}
