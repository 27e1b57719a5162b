import { type Pipeline, pipelineSpec } from '@perch/contracts';
import { expect, it } from 'vitest';
import { timingText } from './pipeline-run.ts';
import { pipelineText } from './pipeline-show.ts';

const spec = pipelineSpec.parse({
  kind: 'Pipeline',
  name: 'p',
  nodes: { a: { endpoint: 'e/a' }, b: { module: 'm@2', input: '$a' } },
  output: '$b',
});
const place = { instances: null, isolation: null, missing: null };
const pipeline: Pipeline = {
  name: 'p',
  generation: 3,
  spec,
  nodes: [
    {
      ...place,
      node: 'a',
      step: 1,
      waits: [],
      kind: 'endpoint',
      name: 'e/a',
      instances: '2 gpu',
      versions: [
        { version: 4, sharePercent: 90, servers: ['s1', 's2'] },
        { version: 5, sharePercent: 10, servers: ['s2'] },
      ],
    },
    { ...place, node: 'b', step: 2, waits: ['a'], kind: 'module', name: 'm@2', isolation: 'worker', versions: [] },
  ],
  message: '2 nodes in 2 steps: a; then b',
  updatedAt: '2026-01-01T00:00:00.000Z',
  updatedBy: 'ann',
};

it('shows what runs where, a row a version', () => {
  const text = pipelineText(pipeline, true, Date.parse('2026-01-01T00:01:00.000Z'));
  expect(text.split('\n').slice(-4)).toEqual([
    'STEP  NODE  RUNS          VERSION  TRAFFIC  WHERE            INSTANCES  MISSING',
    '1     a     endpoint e/a  4        90 %     s1, s2           2 gpu      -',
    '1     a     endpoint e/a  5        10 %     s2               2 gpu      -',
    '2     b     module m@2    -        -        routers, worker  -          -',
  ]);
  expect(text).toContain('generation  3 by ann, 60 s ago');
});

it('reads the trace of a reply', () => {
  const header = 'a;dur=12.300;start=0.100;desc=ok, b;dur=3.000;start=12.500;desc=fallback;runs=4';
  expect(timingText(header).split('\n').slice(1)).toEqual([
    'a     0.1 ms   12.3 ms  ok',
    'b     12.5 ms  3.0 ms   fallback',
  ]);
});
