import { builtinOptions, parseBuiltinOptions } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { endpointCommand, type HuggingFaceFiles, readHuggingFace } from './huggingface-facts.plan.ts';

const config = (architecture: string, more: object = {}) => ({ architectures: [architecture], ...more });
const steps = (...types: string[]) => types.map((type) => ({ type: `sentence_transformers.models.${type}` }));

describe('what a Hugging Face folder says', () => {
  it.each<[string, Partial<HuggingFaceFiles>, string, object]>([
    [
      'sentence-transformers with its own length, mean and normalisation',
      {
        config: config('BertModel', { max_position_embeddings: 512 }),
        sentenceBert: { max_seq_length: 256 },
        pooling: { pooling_mode_mean_tokens: true, pooling_mode_cls_token: false },
        modules: steps('Transformer', 'Pooling', 'Normalize'),
      },
      'text-embedding',
      { maxTokens: 256, pooling: 'mean', normalize: true },
    ],
    [
      'sentence-transformers by the first token, not normalised',
      { config: config('BertModel'), pooling: { pooling_mode: 'cls' }, modules: steps('Transformer', 'Pooling') },
      'text-embedding',
      { pooling: 'cls', normalize: false },
    ],
    [
      'a plain encoder',
      { config: config('BertModel', { max_position_embeddings: 512 }), tokenizerConfig: { model_max_length: 128 } },
      'text-embedding',
      { maxTokens: 128 },
    ],
    [
      "RoBERTa's positions begin behind the padding",
      { config: config('RobertaForSequenceClassification', { max_position_embeddings: 514, model_type: 'roberta', pad_token_id: 1 }), tokenizerConfig: { model_max_length: 1e30 } },
      'text-classification',
      { maxTokens: 512 },
    ],
    [
      'a regression',
      { config: config('BertForSequenceClassification', { problem_type: 'regression' }) },
      'text-classification',
      { scores: 'none' },
    ],
    ['a decoder', { config: config('GPT2LMHeadModel', { n_positions: 1024 }) }, 'text-generation', {}],
    ['named entities', { config: config('BertForTokenClassification') }, 'text-tokens', {}],
    ['pictures by class', { config: config('ViTForImageClassification'), preprocessor: { size: 224 }, hasTokenizer: false }, 'image-classification', {}],
    ['pictures by several classes', { config: config('ViTForImageClassification', { problem_type: 'multi_label_classification' }), hasTokenizer: false }, 'image-classification', { scores: 'sigmoid' }],
    ['pictures', { config: config('ViTModel'), preprocessor: {}, hasTokenizer: false }, 'image-embedding', {}],
    ['no config at all', {}, 'text-tokens', {}],
  ])('%s', (_what, files, task, options) => {
    const facts = readHuggingFace({ hasTokenizer: true, ...files });
    expect([facts.task, facts.processing.options ?? {}]).toEqual([task, options]);
    expect(facts.notes).toEqual([]);
    expect(() => parseBuiltinOptions(facts.processing.builtin!, facts.processing.options)).not.toThrow();
  }); // biome-ignore format: a table

  it('says which pooling and which steps are left out', () => {
    const files = { pooling: { pooling_mode_max_tokens: true }, modules: steps('Transformer', 'Pooling', 'Dense') };
    const { processing, notes } = readHuggingFace({ hasTokenizer: true, ...files });
    expect(processing.options).toEqual({ pooling: 'none', normalize: false });
    expect(notes).toEqual([
      expect.stringContaining('pools by max_tokens'),
      expect.stringContaining('sentence_transformers.models.Dense'),
    ]);
  });

  it('serves what no built-in is for as tensors, and says so', () => {
    const { processing, notes, task } = readHuggingFace({
      hasTokenizer: true,
      config: config('WhisperForConditionalGeneration'),
    });
    expect([task, processing.builtin]).toEqual(['other', 'passthrough']);
    expect(notes[0]).toContain('WhisperForConditionalGeneration');
  });

  it('keeps what is worth searching by', () => {
    const files = {
      config: config('ViTForImageClassification', {
        model_type: 'vit',
        id2label: { 0: 'cat', 1: 'dog' },
        _name_or_path: 'x/y',
      }),
      preprocessor: { size: { height: 224, width: 224 } },
    };
    expect(readHuggingFace({ hasTokenizer: false, ...files }).metadata).toEqual({
      task: 'image-classification',
      'hf.architecture': 'ViTForImageClassification',
      'hf.model_type': 'vit',
      'hf.name': 'x/y',
      'hf.labels': '2',
      'hf.image_size': '224x224',
    });
  });

  it('takes the task that is named, of those there are', () => {
    const files = { hasTokenizer: true, config: config('BertModel') };
    expect(readHuggingFace(files, 'text-tokens').processing).toEqual({ builtin: 'text-tokens' });
    expect(Object.keys(builtinOptions)).toContain(
      readHuggingFace(files, 'zero-shot-image-classification').processing.builtin,
    );
    expect(() => readHuggingFace(files, 'text-to-speech')).toThrow(
      /there is no text-to-speech; there are text-embedding/,
    );
  });
});

describe('the command of the endpoint', () => {
  it('has its flags filled in', () => {
    const processing = {
      builtin: 'text-embedding',
      options: { maxTokens: 256, pooling: 'mean', padding: { to: 256 } },
    };
    expect(endpointCommand('minilm', 'nlp/minilm', processing)).toBe(
      `perch endpoint add minilm --model nlp/minilm --processing text-embedding --option maxTokens=256 --option pooling=mean --option 'padding={"to":256}'`,
    );
  });
});
