import type { ServerFacts } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { gpu, needed, serverFacts, variant } from '../../../../test/support/placement.ts';
import { compatibilityFault, sameVersion } from './compatibility.filter.ts';
import { onnxLimits } from './onnxruntime.plan.ts';
import type { ModelVariant } from './variant.ts';

const plan = (version = '10.3.0', computeCapabilities: string[] = []) =>
  variant('m', { backend: 'tensorrt', tensorrt: { version, computeCapabilities } });
const onnx = (opset: number, ir: number) => variant('m', { onnx: { opset, ir } });
const ensemble = (more: object) => {
  const step = needed('step');
  return variant('m', { backend: null }, { needs: [{ ...step, model: { ...step.model, engine: { ...step.model.engine, ...more } } }] }); // biome-ignore format: one row reads better
};

describe('what a server must have', () => {
  it.each<[string, ModelVariant, Partial<ServerFacts> | null, string | undefined]>([
    ['nothing is known of the server', plan(), null, undefined],
    ['its back-ends are not known', plan(), { backends: null }, undefined],
    ['the back-end is there', variant('m'), { backends: ['onnxruntime', 'python'] }, undefined],
    ['the back-end is missing', plan(), { backends: ['onnxruntime'] }, 'has no back-end tensorrt'],
    ['no back-end is needed', variant('m', { backend: null }), { backends: [] }, undefined],
    ['what it needs wants a back-end too', ensemble({ backend: 'python' }), { backends: ['onnxruntime'] }, 'has no back-end python'],
    ['an ensemble beside it needs none', ensemble({ platform: 'ensemble', backend: 'ensemble' }), { backends: [] }, undefined],
    ['a GPU is wanted and there', variant('m', { gpu: true }), { gpus: [gpu()] }, undefined],
    ['a GPU is wanted', variant('m', { gpu: true }), {}, 'has no GPU'],
    ['the same TensorRT', plan('10.3.0.26'), { tensorrt: '10.3.0.30' }, undefined],
    ['TensorRT is not known', plan(), { tensorrt: null }, undefined],
    ['another TensorRT', plan(), { tensorrt: '10.4.0' }, 'wants TensorRT 10.3.0, has 10.4.0'],
    ['the compute capability is in the list', plan('10.3', ['8.0', '9.0']), { gpus: [gpu()] }, undefined],
    ['the compute capability is not known', plan('10.3', ['8.0']), { gpus: [gpu({ computeCapability: null })] }, undefined],
    ['another compute capability', plan('10.3', ['8.0', '8.6']), { gpus: [gpu()] }, 'wants compute capability 8.0 or 8.6, has 9.0'],
    ['one GPU of two does not fit', plan('10.3', ['9.0']), { gpus: [gpu(), gpu({ computeCapability: '8.0' })] }, 'wants compute capability 9.0, has 9.0, 8.0'],
    ['ONNX Runtime is new enough', onnx(21, 10), { onnxruntime: '1.19.2' }, undefined],
    ['the opset is too new', onnx(22, 10), { onnxruntime: '1.19.2' }, 'wants ONNX opset 22, ONNX Runtime 1.19.2 takes 21'],
    ['the IR version is too new', onnx(17, 10), { onnxruntime: '1.17.0' }, 'wants ONNX IR version 10, ONNX Runtime 1.17.0 takes 9'],
    ['a release newer than the table', onnx(30, 20), { onnxruntime: '1.99.0' }, undefined],
    ['ONNX Runtime is not known', onnx(30, 20), { onnxruntime: null }, undefined],
  ])('%s', (_what, wanted, facts, fault) => {
    expect(compatibilityFault(wanted, facts && serverFacts(facts))).toBe(fault);
  }); // biome-ignore format: a table

  it.each([
    ['10.3.0', '10.3.0', true],
    ['10.3', '10.3.7', true],
    ['10.3.0', '10.3', true],
    ['v8.6.1', '8.6.1.6', true],
    ['8.6.1.6-1+cuda12', '8.6.1', true],
    ['8.6.1', '8.6.2', false],
    ['10', '8.6.1', false],
  ])('TensorRT %s on %s: %s', (wanted, present, same) => expect(sameVersion(wanted, present)).toBe(same));

  it('limits of ONNX Runtime only grow', () => {
    const all = Array.from({ length: 17 }, (_, at) => onnxLimits(`1.${6 + at}.1`)!);
    for (const [at, { opset, ir }] of all.entries()) {
      expect(opset).toBeGreaterThanOrEqual(all[at - 1]?.opset ?? 0);
      expect(ir).toBeGreaterThanOrEqual(all[at - 1]?.ir ?? 0);
    }
    expect(onnxLimits('unknown')).toBeNull();
  });
});
