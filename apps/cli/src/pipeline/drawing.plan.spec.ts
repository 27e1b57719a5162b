import { pipelineSpec } from '@perch/contracts';
import { expect, it } from 'vitest';
import { drawMermaid, drawText } from './drawing.plan.ts';

const spec = pipelineSpec.parse({
  kind: 'Pipeline',
  name: 'v/find',
  nodes: {
    detect: { endpoint: 'v/detect', input: { image: '$body.image' }, timeoutMs: 500, fallback: { value: null } },
    words: { endpoint: 'clip/text', version: 3, input: { text: '$body.text' }, when: { pick: '$body.text' } },
    embed: { module: 'clip/embed@2', map: { over: '$detect.boxes' }, input: { crop: '$item', of: '$words' } },
    log: { endpoint: 'log', input: 1, after: ['embed'], when: { pick: '$detect.score', above: 0.5, notEquals: 'x"' } },
  },
  output: { vectors: '$embed', logged: '$log' },
});

it('draws the nodes step by step', () => {
  expect(drawText(spec).split('\n')).toEqual([
    'step 1  detect  endpoint v/detect, within 500 ms, else null              <- body',
    '        words   endpoint clip/text/3, when $body.text                    <- body',
    'step 2  embed   module clip/embed@2, each of $detect.boxes, 8 at once    <- words, detect',
    'step 3  log     endpoint log, when $detect.score is not "x\\"" and > 0.5  <- detect, embed',
    'output          {"vectors":"$embed","logged":"$log"}                     <- embed, log',
  ]);
});

it('draws a Mermaid flowchart', () => {
  expect(drawMermaid(spec).split('\n')).toEqual([
    'flowchart LR',
    '  body([body])',
    '  output([output])',
    '  n_detect["detect<br/>endpoint v/detect<br/>within 500 ms<br/>else null"]',
    '  body --> n_detect',
    '  n_words{{"words<br/>endpoint clip/text/3<br/>when $body.text"}}',
    '  body --> n_words',
    '  n_embed[["embed<br/>module clip/embed@2<br/>each of $detect.boxes, 8 at once"]]',
    '  n_words --> n_embed',
    '  n_detect --> n_embed',
    '  n_log{{"log<br/>endpoint log<br/>when $detect.score is not #quot;x\\#quot;#quot; and > 0.5"}}',
    '  n_detect --> n_log',
    '  n_embed --> n_log',
    '  n_embed --> output',
    '  n_log --> output',
  ]);
});
