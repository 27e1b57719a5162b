import { createTritonControl } from '@perch/triton/control';
import { describe, expect, it } from 'vitest';
import { heavyModel } from '../support/onnx.ts';
import { putModel, startEngine } from '../support/real-triton.ts';

describe('stopping the engine', () => {
  it('answers every request it had taken, takes no more, and exits 0 without waiting for idle connections', async () => {
    const server = await startEngine();
    const control = createTritonControl({ grpc: server.grpc });
    try {
      await putModel(server.repository, 'busy', {
        config: 'backend: "onnxruntime" max_batch_size: 1',
        versions: { 1: heavyModel(60) },
      });
      await control.load('busy');
      const body = JSON.stringify({
        inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 512], data: new Array(512).fill(1) }],
      });
      const ask = () =>
        fetch(`http://${server.http}/v2/models/busy/infer`, { method: 'POST', body }).then(async (answer) => {
          await answer.arrayBuffer();
          return answer.status;
        });
      const taken = async () => {
        const text = await (await fetch(`http://${server.metrics}/metrics`)).text();
        const counts = text.matchAll(
          /^nv_inference_(?:request_success|pending_request_count)\{model="busy",version="1"\} (\d+)$/gm,
        );
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
      };
      const asked = Array.from({ length: 40 }, ask);
      // Taken are those that are done, those that wait, and the one that runs.
      await expect.poll(taken, { interval: 2, timeout: 20_000 }).toBeGreaterThanOrEqual(asked.length - 1);
      const startedMs = Date.now();
      expect(await server.stop()).toBe(0);
      expect(Date.now() - startedMs).toBeLessThan(9_000);
      expect(await Promise.all(asked)).toEqual(asked.map(() => 200));
      await expect(ask()).rejects.toThrow();
    } finally {
      control.close();
      await server.remove();
    }
  });
});
