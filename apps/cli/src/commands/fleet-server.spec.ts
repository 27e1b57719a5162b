import type { ServerDetail } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { standingOf } from './fleet-drain.ts';
import { serverText } from './fleet-server.ts';

const now = Date.parse('2026-01-01T00:01:00Z');
const then = '2026-01-01T00:00:00Z';
const detail = (more: Partial<ServerDetail> = {}): ServerDetail => ({
  id: 'i1', name: 'gpu-1', pool: 'p', http: 'h:8000', grpc: 'h:8001', labels: { zone: 'a' }, live: true, lastSeenAt: then,
  desiredRevision: 7, bootId: 'b', drain: null, models: [], ram: { totalBytes: 8_000_000_000, freeBytes: 3_000_000_000 }, gpu: null,
  failures: [],
  observed: {
    lineage: null, revision: 5, heldRemovals: [], models: {}, disk: { freeBytes: 5_000_000, cacheBytes: 1 },
    triton: { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 1 },
    facts: { host: 'h', supervised: true, backends: ['onnxruntime'], tensorrt: '10.3.0', onnxruntime: '1.19.2', ramBytes: 1, gpus: [{ uuid: 'u', name: 'H100', computeCapability: '9.0', totalBytes: 80_000_000_000 }] },
    supervision: { state: 'running', restarts: 2, lastExit: 'killed for memory', console: ['out of \u001b[31mmemory'] },
  },
  ...more,
}); // biome-ignore format: one record

describe('perch fleet server show', () => {
  it('tells each model as it should be and as it is, and what is waited for', () => {
    const model = {
      name: 'm-v1', desired: true, state: 'loading' as const, reason: 'wait', since: then, memory: { ramBytes: 1_000_000, gpuBytes: 2_000_000_000 },
      needs: ['tok'], endpoints: ['text/a'], waitsFor: 'the model server to be done with it',
    }; // biome-ignore format: one record
    const text = serverText(detail({ models: [model], failures: [{ tritonModel: 'fast', reason: 'bad plan' }] }), now);
    for (const words of [
      /document +7, the agent follows 5/,
      /memory +3.0 GB free of 8.0 GB/,
      /gpus +H100 \(9.0\) 80 GB/,
      /last exit +killed for memory/,
      /m-v1 +ready +loading +60 s ago +1.0 MB \+ 2.0 GB GPU +text\/a +tok +the model server to be done with it +wait/,
      /fast +bad plan/,
      /Last lines of its console:\n {2}out of \?\[31mmemory/,
    ])
      expect(text).toMatch(words);
  });

  it('says who took it out of service and what it waits for', () => {
    const waitsFor = ['a: to be ready on s2', 'b: x', 'c: y', 'd: z'];
    const drain = { since: then, by: 'olga', reason: 'new driver', drained: false, waitsFor };
    expect(serverText(detail({ drain }), now)).toMatch(/in service +no, by olga 60 s ago: new driver; waits for a: to be ready on s2; b: x; c: y and 1 more/); // biome-ignore format: one row reads better
    expect(standingOf(detail({ drain, live: false }))).toContain('(it does not answer)');
    expect(serverText(detail({ observed: null }), now)).toContain('has not reported yet');
  });
});
