import { pipelineSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { definePipeline, each, optional } from './define-pipeline.ts';

interface Boxes {
  boxes: { crop: string; score: number }[];
}

const yaml = `
kind: Pipeline
name: vision/find
nodes:
  detect: { endpoint: vision/detect, input: { image: $body.image, 'min-score': '$body["min score"]?' }, timeoutMs: 500 }
  embed:
    module: clip/embed@2
    map: { over: $detect.boxes, concurrency: 4 }
    when: { pick: $item.score, above: 0.5 }
    input: { crop: $item.crop, at: $index, price: $$5 }
    fallback: { value: null }
  log: { endpoint: audit/log, after: [embed], input: { count: 1 } }
output: { first: '$detect.boxes[0]', scores: '$detect.boxes[*].score', vectors: $embed, logged: $log.ok }
limits: { timeoutMs: 5000 }
`;

const typescript = definePipeline<{ image: string; 'min score'?: number }>(
  'vision/find',
  (p) => {
    const detect = p.endpoint<Boxes>('detect', 'vision/detect', {
      input: { image: p.body.image, 'min-score': optional(p.body['min score']) },
      timeoutMs: 500,
    });
    const embed = p.mapModule<Boxes['boxes'][0], number[]>('embed', 'clip/embed@2', {
      over: detect.boxes,
      atOnce: 4,
      when: (box) => ({ pick: box.score, above: 0.5 }),
      input: (box, index) => ({ crop: box.crop, at: index, price: '$5' }),
      fallback: () => null,
    });
    const log = p.endpoint<{ ok: boolean }>('log', 'audit/log', { after: [embed], input: { count: 1 } });
    return { first: detect.boxes[0]!, scores: each(detect.boxes).score, vectors: embed, logged: log.ok };
  },
  { limits: { timeoutMs: 5000 } },
);

describe('definePipeline', () => {
  it('gives the very specification that the YAML does', () => {
    expect(pipelineSpec.parse(JSON.parse(JSON.stringify(typescript)))).toEqual(pipelineSpec.parse(parse(yaml)));
  });

  it('refuses two nodes of one name', () => {
    expect(() => definePipeline('p', (p) => [p.endpoint('a', 'x'), p.endpoint('a', 'y')])).toThrow(
      'pipeline p: there are two nodes a',
    );
  });
});
