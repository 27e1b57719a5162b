import { describe, expect, it } from 'vitest';
import { desiredModel, gibibyte, gpu, needed, plannedServer, serverFacts, variant } from '../../../../test/support/placement.ts'; // biome-ignore format: one row reads better
import { addedMemory, deviceOf, fillOf, guessBytes, measuredMemory, memoryKey, reservedBytes, roomOf, runsOnGpu } from './memory.plan.ts'; // biome-ignore format: one row reads better
import { noFacts } from './placement-world.ts';

const cpu = plannedServer('c');
const onGpu = plannedServer('g', { device: 'H100', facts: serverFacts({ gpus: [gpu()] }) });

describe('what a model takes', () => {
  it('is guessed from its files until somebody says or measures it', () => {
    expect(guessBytes(desiredModel('d', 100))).toBe(150);
    expect(guessBytes(desiredModel('d', 100), 7)).toBe(7);
  });

  it('is GPU memory where there is a GPU, unless all instances are on the CPU', () => {
    const auto = variant('m', {}, { bytes: 100 });
    const cpuOnly = variant('m', {}, { bytes: 100, engine: { instances: [{ kind: 'cpu', count: 1 }] } });
    expect(addedMemory(auto, cpu, noFacts)).toEqual({ ramBytes: 150, gpuBytes: 0 });
    expect(addedMemory(auto, onGpu, noFacts)).toEqual({ ramBytes: 0, gpuBytes: 150 });
    expect(addedMemory(cpuOnly, onGpu, noFacts)).toEqual({ ramBytes: 150, gpuBytes: 0 });
    expect(runsOnGpu(desiredModel('d', 0, { instances: [{ kind: 'gpu', count: 1 }] }))).toBe(true);
  });

  it('counts what it needs once, and nothing that is there', () => {
    const both = variant('m', {}, { bytes: 100, needs: [needed('n', 'x', undefined, 100), needed('n', 'x', undefined, 100)] }); // biome-ignore format: one row reads better
    expect(addedMemory(both, cpu, noFacts).ramBytes).toBe(300);
    expect(addedMemory(both, cpu, { ...noFacts, held: new Set(['c n']) }).ramBytes).toBe(150);
    expect(addedMemory(both, cpu, { ...noFacts, held: new Set(['c n', 'c m']) }).ramBytes).toBe(0);
  });

  it('is nothing for an ensemble, and what was measured on that device for the others', () => {
    const ensemble = variant('m', {}, { bytes: 100, engine: { platform: 'ensemble' } });
    expect(addedMemory(ensemble, cpu, noFacts)).toEqual({ ramBytes: 0, gpuBytes: 0 });
    const model = variant('m', {}, { bytes: 100 });
    const measured = new Map([[memoryKey(model.model.digest, 'H100'), { ramBytes: 5, gpuBytes: 9 }]]);
    expect(addedMemory(model, onGpu, { ...noFacts, measured })).toEqual({ ramBytes: 5, gpuBytes: 9 });
    expect(addedMemory(model, cpu, { ...noFacts, measured })).toEqual({ ramBytes: 150, gpuBytes: 0 });
    expect(measuredMemory({ ramBytes: -3, gpuBytes: { a: 4, b: 5 } })).toEqual({ ramBytes: 0, gpuBytes: 9 });
  });
});

describe('what a server has room for', () => {
  it.each([
    [1, 256 / 1_024],
    [8, 0.4],
    [16, 0.8],
    [64, 2],
  ])('of %d GiB it keeps %d GiB back', (total, kept) => {
    expect(reservedBytes(total * gibibyte)).toBeCloseTo(kept * gibibyte, 0);
  });

  it('is what neither its process nor what is placed on it takes', () => {
    const server = (used: number, placed: number) =>
      plannedServer('s', {
        facts: serverFacts({ ramBytes: 8 * gibibyte }),
        usage: { ramBytes: used * gibibyte, gpuBytes: {} },
        placed: { ramBytes: placed * gibibyte, gpuBytes: 0 },
      });
    expect(roomOf(server(2, 3)).ramBytes).toBe(Math.floor(4.6 * gibibyte));
    expect(roomOf(server(5, 3)).ramBytes).toBe(Math.floor(2.6 * gibibyte));
    expect(fillOf(server(5, 2))).toBe(0.25);
  });

  it('is not known without figures', () => {
    expect(roomOf(cpu)).toEqual({ ramBytes: null, gpuBytes: null });
    expect(fillOf(cpu)).toBeNull();
    expect(fillOf(onGpu)).toBe(0);
    expect([deviceOf(null), deviceOf(serverFacts()), deviceOf(serverFacts({ gpus: [gpu({ name: null })] }))]).toEqual(['cpu', 'cpu', 'gpu']); // biome-ignore format: one row reads better
  });
});
