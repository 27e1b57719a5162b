import type { TextTokensOptions } from '@perch/contracts';
import { defineProcessing, type TextTokenizer } from '../contract.ts';
import { writeReply } from '../passthrough/reply.ts';
import { readTextsOrPairs } from './text-body.ts';
import { planTextInput, type TextInputPlan, textTensors } from './text-input.ts';

interface Loaded {
  options: TextTokensOptions;
  plan: TextInputPlan;
  tokenizer: TextTokenizer;
}

/** Texts in, the model's outputs as they are: `{"<output>": nested lists}`. */
export const textTokens = defineProcessing<unknown, Loaded, undefined, TextTokensOptions>({
  async load({ options, files, signature, maxBatchSize }) {
    const plan = planTextInput({ signature, maxBatchSize, options, builtin: 'text-tokens' });
    return { options, plan, tokenizer: await files.tokenizer(options.tokenizer) };
  },
  preprocess(body, { options, plan, tokenizer }) {
    const { texts } = readTextsOrPairs(body, options, plan.texts);
    const { overlong, truncation } = options;
    const { maxTokens, padding } = plan;
    return { inputs: textTensors(plan, tokenizer.encodeBatch(texts, { maxTokens, overlong, padding, truncation })) };
  },
  postprocess: (outputs) => writeReply(outputs, 'named'),
});
