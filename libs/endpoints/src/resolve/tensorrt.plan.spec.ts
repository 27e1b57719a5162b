import type { EngineSpec, FileFacts } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { LayoutFault } from './layout-fault.ts';
import { capabilityInName, planTensorrt } from './tensorrt.plan.ts';

const files = (...paths: string[]) => paths.map((path) => ({ path, sha256: 'a'.repeat(64), size: 1 }));
const header = (...versions: [string, string | null][]): FileFacts => ({
  tensorrt: Object.fromEntries(versions.map(([path, version]) => [path, { version }])),
});
const plan = (
  paths: string[],
  engine: EngineSpec = {},
  more: { facts?: FileFacts; metadata?: Record<string, string>; byText?: Record<string, string> } = {},
) =>
  planTensorrt(files(...paths), {
    engine,
    facts: more.facts ?? null,
    metadata: more.metadata ?? {},
    byText: more.byText ?? {},
  });
const given = { tensorrt: { version: '10.3.0', computeCapability: '8.6' } };

describe('the GPU in a file name', () => {
  it.each<[string, string | null]>([
    ['model.cc86.plan', '8.6'],
    ['1/model_sm_89.engine', '8.9'],
    ['yolo-sm8.6-fp16.engine', '8.6'],
    ['net.cc_9.0.plan', '9.0'],
    ['m.sm120.plan', '12.0'],
    ['cc75.trt', '7.5'],
    ['model.plan', null],
    ['accuracy86.plan', null],
    ['model-86.plan', null],
    ['sm86/model.plan', null],
  ])('%s: %s', (path, capability) => expect(capabilityInName(path)).toBe(capability));
});

describe('which plans run where', () => {
  it.each<[string, ReturnType<typeof plan>, ReturnType<typeof plan>]>([
    [
      'one plan, all of it said',
      plan(['model.plan'], given),
      [{ version: '10.3.0', computeCapabilities: ['8.6'], paths: ['model.plan'], ccModelFilenames: null }],
    ],
    [
      'version from the header, GPU from the name',
      plan(['m.cc86.plan'], {}, { facts: header(['m.cc86.plan', '10.3.0']) }),
      [{ version: '10.3.0', computeCapabilities: ['8.6'], paths: ['m.cc86.plan'], ccModelFilenames: null }],
    ],
    [
      'both from metadata',
      plan(['x.engine'], {}, { metadata: { 'tensorrt.version': '8.6.1.6', 'cuda.computeCapability': '8.0, 8.6' } }),
      [{ version: '8.6.1', computeCapabilities: ['8.0', '8.6'], paths: ['x.engine'], ccModelFilenames: null }],
    ],
    [
      'any GPU',
      plan(['x.engine'], { tensorrt: { version: '10.3', computeCapability: 'any' } }),
      [{ version: '10.3', computeCapabilities: [], paths: ['x.engine'], ccModelFilenames: null }],
    ],
    [
      'several plans by their names',
      plan(['m.cc86.plan', 'm.cc89.plan'], { tensorrt: { version: '10.3.0' } }),
      [
        {
          version: '10.3.0',
          computeCapabilities: ['8.6', '8.9'],
          paths: ['m.cc86.plan', 'm.cc89.plan'],
          ccModelFilenames: { '8.6': 'm.cc86.plan', '8.9': 'm.cc89.plan' },
        },
      ],
    ],
    [
      'several plans by the settings',
      plan(['a.plan', 'b.plan'], {
        tensorrt: { version: '10.3.0' },
        ccModelFilenames: { '8.6': 'a.plan', '8.9': 'b.plan' },
      }),
      [
        {
          version: '10.3.0',
          computeCapabilities: ['8.6', '8.9'],
          paths: ['a.plan', 'b.plan'],
          ccModelFilenames: { '8.6': 'a.plan', '8.9': 'b.plan' },
        },
      ],
    ],
    [
      'the usual name beside plans for named GPUs, by the text',
      plan(['1/model.plan', '1/g.plan'], { tensorrt: { version: '10.3.0' } }, { byText: { '8.6': 'g.plan' } }),
      [
        {
          version: '10.3.0',
          computeCapabilities: ['8.6'],
          paths: ['1/g.plan'],
          ccModelFilenames: { '8.6': 'g.plan' },
        },
      ],
    ],
    [
      'plans of two TensorRTs are two ways to run, the newer first',
      plan(['a.cc86.plan', 'b.cc86.plan'], {}, { facts: header(['a.cc86.plan', '8.6.1'], ['b.cc86.plan', '10.3.0']) }),
      [
        {
          version: '10.3.0',
          computeCapabilities: ['8.6'],
          paths: ['b.cc86.plan'],
          ccModelFilenames: { '8.6': 'b.cc86.plan' },
        },
        {
          version: '8.6.1',
          computeCapabilities: ['8.6'],
          paths: ['a.cc86.plan'],
          ccModelFilenames: { '8.6': 'a.cc86.plan' },
        },
      ],
    ],
    [
      'one of several by its name',
      plan(['a.plan', 'b.plan'], { ...given, defaultModelFilename: 'b.plan' }),
      [{ version: '10.3.0', computeCapabilities: ['8.6'], paths: ['b.plan'], ccModelFilenames: null }],
    ],
  ])('%s', (_what, got, wanted) => expect(got).toEqual(wanted));

  it.each<[string, () => unknown, string]>([
    ['no version', () => plan(['m.cc86.plan']), 'give engine.tensorrt.version (or metadata tensorrt.version'],
    ['a header that does not tell', () => plan(['m.cc86.plan'], {}, { facts: header(['m.cc86.plan', null]) }), 'm.cc86.plan does not tell which TensorRT built it'],
    ['no GPU', () => plan(['m.plan'], { tensorrt: { version: '10.3.0' } }), 'give engine.tensorrt.computeCapability such as "8.6" or "any"'],
    ['another version than the header says', () => plan(['m.cc86.plan'], given, { facts: header(['m.cc86.plan', '8.6.1']) }), 'was built by TensorRT 8.6.1 and not by 10.3.0'],
    ['two plans for one GPU', () => plan(['a.cc86.plan', 'b.cc86.plan'], given), 'a.cc86.plan and b.cc86.plan are both for compute capability 8.6'],
    ['one of several that does not tell', () => plan(['a.cc86.plan', 'b.plan'], given), '2 plans, and b.plan does not tell the GPU'],
    ['a name that is not there', () => plan(['a.plan'], { ...given, ccModelFilenames: { '8.9': 'q.plan' } }), 'ccModelFilenames names q.plan'],
    ['no plan', () => plan(['a.md', 'b.md'], given), 'no TensorRT plan among 2 files'],
  ])('%s is refused', (_what, run, words) => {
    expect(run).toThrow(LayoutFault);
    expect(run).toThrow(words);
  }); // biome-ignore format: one row a case
});
