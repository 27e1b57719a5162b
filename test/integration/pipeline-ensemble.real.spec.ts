import { pipelineSpec } from '@perch/contracts';
import { createTritonControl } from '@perch/triton/control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type NodeModel, planEnsemble } from '../../apps/cli/src/pipeline/ensemble.plan.ts';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, putModel, startTriton } from '../support/real-triton.ts';
import { loadScale } from './router-stand.ts';

describe.skipIf(missingReason('triton'))('an exported pipeline of models alone, on a real Triton', () => {
  let server: ModelServer;
  beforeAll(async () => {
    server = await startTriton({ id: 'exported' });
    await loadScale(server, 'one', 2);
    await loadScale(server, 'two', 3);
  });
  afterAll(() => server?.remove());

  it('is answered by the ensemble, as the pipeline would answer it', async () => {
    const spec = pipelineSpec.parse({
      kind: 'Pipeline',
      name: 'p',
      nodes: {
        a: { endpoint: 'one', input: { x: '$body.x' } },
        b: { endpoint: 'two', input: { x: '$a.y' } },
        c: { endpoint: 'two', input: { x: '$body.x' } },
      },
      output: { chained: '$b.y', beside: '$c.y', first: '$a.y' },
    });
    const configOf = async (name: string): Promise<NodeModel> => {
      const answer = await fetch(`http://${server.http}/v2/models/${name}/config`);
      type Config = { max_batch_size: number; input: NodeModel['inputs']; output: NodeModel['outputs'] };
      const config = (await answer.json()) as Config;
      const { max_batch_size: maxBatchSize, input: inputs, output: outputs } = config;
      return { name, maxBatchSize, inputs, outputs, processing: null };
    };
    const [one, two] = [await configOf('one'), await configOf('two')];
    const plan = planEnsemble('p', spec, new Map([['a', one], ['b', two], ['c', two]])); // biome-ignore format: one row reads better
    if (!('text' in plan)) throw new Error(plan.why);
    await putModel(server.repository, 'p', { config: plan.text, versions: { 1: undefined } });
    const control = createTritonControl({ grpc: server.grpc, timeoutMs: 30_000 });
    await control.load('p', { timeoutMs: 30_000 }).finally(() => control.close());
    const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }];
    const reply = await fetch(`http://${server.http}/v2/models/p/infer`, { method: 'POST', body: JSON.stringify({ inputs }) }); // biome-ignore format: one row reads better
    const { outputs } = (await reply.json()) as { outputs: { name: string; data: number[] }[] };
    expect(Object.fromEntries(outputs.map(({ name, data }) => [name, data]))).toEqual({
      chained: [6, 12, 18, 24],
      beside: [3, 6, 9, 12],
      first: [2, 4, 6, 8],
    });
  });
});
