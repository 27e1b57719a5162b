import type { DesiredModel, FileFacts, ManifestFile } from '@perch/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, ruleSpec } from '../support/fleet.ts';
import { gpu, serverFacts } from '../support/placement.ts';

let world: FleetWorld;
let router: FakeRouter;
let agents: FakeAgent[];
beforeEach(async () => {
  agents = [];
  world = await FleetWorld.start();
  router = await world.router('r1');
});
afterEach(() => world.close());

const join = async (name: string, more: Partial<FakeAgent>) => {
  const agent = Object.assign(await world.agent(name), more);
  agents.push(agent);
  await agent.report();
  return agent;
};
const converge = () => world.converge(agents, [router]);
const file = (path: string): ManifestFile => ({ path, sha256: 'a'.repeat(64), size: 1 });
const onnx: FileFacts['onnx'] = { 'model.onnx': { opset: 17, ir: 9 } };
const both = { formatPriority: ['tensorrt_plan', 'onnxruntime_onnx'] };
const backends = ['tensorrt', 'onnxruntime'];
const a10 = serverFacts({
  host: 'a',
  backends,
  tensorrt: '10.3.0.26',
  gpus: [gpu({ computeCapability: '8.6' })],
  onnxruntime: '1.20.1',
});
const h100 = serverFacts({
  host: 'h',
  backends,
  tensorrt: '10.3.0.26',
  gpus: [gpu({ computeCapability: '9.0' })],
  onnxruntime: '1.20.1',
});
const cpu = serverFacts({ host: 'c', backends: ['onnxruntime'], onnxruntime: '1.20.1' });

const held = (agent: FakeAgent): DesiredModel['engine'] | undefined => Object.values(agent.desired)[0]?.engine;
const way = (agent: FakeAgent) => {
  const engine = held(agent);
  const accelerator = engine?.executionAccelerators?.gpu?.[0];
  return engine && [engine.platform, accelerator ? `${accelerator.name} ${accelerator.precision}` : 'plain'];
};
const quick = { limits: { timeoutMs: 1 } };

describe('a list of formats', () => {
  it('gives each server the first that the version holds and it can run', async () => {
    const facts: FileFacts = { onnx, tensorrt: { 'm.cc86.plan': { version: '10.3.0' } } };
    await world.versions.put('cv/yolo', { files: [file('m.cc86.plan'), file('model.onnx')], facts });
    await world.apply(ruleSpec('yolo', 'cv/yolo', { ...quick, engine: both, fleet: { replicas: 3 } }));
    const [a, h, c] = [
      await join('a', { facts: a10 }),
      await join('h', { facts: h100 }),
      await join('c', { facts: cpu }),
    ];
    await converge();
    expect([way(a), way(h), way(c)]).toEqual([
      ['tensorrt_plan', 'plain'],
      ['onnxruntime_onnx', 'plain'],
      ['onnxruntime_onnx', 'plain'],
    ]);
    expect(held(a)!.ccModelFilenames).toBeUndefined();
    expect(await world.states('yolo')).toEqual(['1 ready']);
  });

  it('tries ONNX Runtime with TensorRT where there is no plan, falls back to plain ONNX, and says so', async () => {
    await world.versions.put('cv/yolo', { files: [file('model.onnx')], facts: { onnx } });
    await world.apply(ruleSpec('yolo', 'cv/yolo', { ...quick, engine: both, fleet: { replicas: 2 } }));
    const [a, c] = [await join('a', { facts: a10 }), await join('c', { facts: cpu })];
    await converge();
    expect([way(a), way(c)]).toEqual([
      ['onnxruntime_onnx', 'tensorrt FP32'],
      ['onnxruntime_onnx', 'plain'],
    ]);
    a.behaviour.set('yolo-v2', 'TensorRT EP failed to create an engine');
    await world.versions.put('cv/yolo', { files: [{ ...file('model.onnx'), size: 2 }], facts: { onnx } });
    await converge();
    const [tried] = world.noted.filter(({ action }) => action === 'deployment.fallback');
    expect(tried!.detail).toMatchObject({
      from: expect.stringMatching(/^yolo-v2-/),
      to: expect.stringMatching(/^yolo-v2-/),
    });
    expect(tried!.detail['from']).not.toBe(tried!.detail['to']);
    const newest = (await world.endpoint('yolo')).deployments.find(({ version }) => version === 2);
    expect(JSON.stringify(newest!.servers)).toContain('TensorRT EP failed to create an engine');
    expect(way(a)).toEqual(['onnxruntime_onnx', 'plain']);
  });

  it('names what a server lacks when none can run any of them', async () => {
    await world.versions.put('cv/old', {
      files: [file('model.onnx')],
      facts: { onnx: { 'model.onnx': { opset: 23, ir: 11 } } },
    });
    await world.apply(ruleSpec('old', 'cv/old', { ...quick, engine: both }));
    await join('c', { facts: cpu });
    await converge();
    const { status } = await world.endpoint('old');
    expect(status.phase).toBe('blocked');
    expect(status.message).toContain('wants ONNX opset 23');
  });

  it('refuses a plan that nobody knows the origin of, and serves it once that is given', async () => {
    await world.versions.put('cv/plan', {
      files: [file('model.plan')],
      facts: { tensorrt: { 'model.plan': { version: null } } },
    });
    await world.apply(ruleSpec('plan', 'cv/plan', quick));
    const a = await join('a', { facts: a10 });
    await converge();
    expect((await world.endpoint('plan')).deployments[0]).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('give engine.tensorrt.computeCapability'),
    });
    await world.versions.change('cv/plan', 1, {
      metadata: { 'tensorrt.version': '10.3.0', 'cuda.computeCapability': '8.6' },
    });
    await converge();
    expect(way(a)).toEqual(['tensorrt_plan', 'plain']);
    expect(await world.states('plan')).toContain('1 ready');
  });
});
