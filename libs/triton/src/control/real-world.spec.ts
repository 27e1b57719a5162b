import { AppError } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { goldenConfigs, realWorldConfigs } from '../../../../test/support/golden.ts';
import { configFaults } from './config-faults.ts';
import { type ModelConfig, modelConfigType, parseModelConfig, writeModelConfig } from './model-config.ts';

const configs = realWorldConfigs();

/** With every default filled in: a field that is left out says the same as one that says its default. */
const whole = (config: ModelConfig): object =>
  modelConfigType.toObject(
    modelConfigType.decode(modelConfigType.encode(modelConfigType.fromObject(config)).finish()),
    {
      defaults: true,
      enums: String,
      longs: String,
      oneofs: true,
    },
  );

describe('configurations as people write them', () => {
  it('are at least thirty', () => expect(configs.length).toBeGreaterThanOrEqual(30));

  it.each(configs.map(({ name, text }) => [name, text]))(
    '%s reads back as what was written, and breaks no rule',
    (_name, text) => {
      const config = parseModelConfig(text);
      const written = writeModelConfig(config);
      expect(whole(parseModelConfig(written))).toEqual(whole(config));
      expect(writeModelConfig(parseModelConfig(written))).toBe(written);
      expect(configFaults(config)).toEqual([]);
      expect(Object.keys(config).length).toBeGreaterThan(0);
    },
  );
});

describe('any text at all', { timeout: 60_000 }, () => {
  const corpus = [...configs.map(({ text }) => text), ...goldenConfigs().map(({ text }) => text)];
  const words = ['{', '}', '<', '>', '[', ']', ':', ',', ';', '#', '"', "'", '\\', '-', '0x', '1e9', '99999999999999999999', 'true', 'TYPE_FP32', 'name', 'input', 'dims', 'parameters', 'key', 'value', '\n', '\0', '\u00e9', '\uD800', 'nan', '__proto__']; // biome-ignore format: one list

  /** A text of the corpus with pieces cut out, doubled or put in. */
  const spoilt = fc
    .tuple(
      fc.constantFrom(...corpus),
      fc.array(
        fc.record({
          at: fc.double({ min: 0, max: 1, noNaN: true }),
          cut: fc.nat(12),
          put: fc.oneof(fc.constantFrom(...words), fc.string()),
        }),
        { minLength: 1, maxLength: 6 },
      ),
    )
    .map(([text, changes]) =>
      changes.reduce((now, { at, cut, put }) => {
        const from = Math.floor(at * now.length);
        return now.slice(0, from) + put + now.slice(from + cut);
      }, text),
    );

  const read = (text: string): void => {
    try {
      const config = parseModelConfig(text);
      const written = writeModelConfig(config);
      expect(writeModelConfig(parseModelConfig(written))).toBe(written);
      expect(Array.isArray(configFaults(config))).toBe(true);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      expect(error.code).toBe('invalid');
      expect(error.message).toMatch(/^config\.pbtxt, line \d+, column \d+: /);
    }
  };

  it('is read, or refused with its line and column', () => fc.assert(fc.property(spoilt, read), { numRuns: 1_500 }));
  it('of words of the language too', () =>
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words), { maxLength: 40 }), (some) => read(some.join(' '))),
      { numRuns: 1_500 },
    ));
  it('of any characters too', () =>
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 60 }), read), { numRuns: 500 }));

  it('does not overflow on deep nesting', () => {
    expect(() => read('dynamic_batching { default_queue_policy { '.repeat(20_000))).not.toThrow();
    expect(() => read(`input ${'['.repeat(50_000)}`)).not.toThrow();
  });
});
