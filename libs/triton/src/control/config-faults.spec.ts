import { describe, expect, it } from 'vitest';
import { configRules, deadlyRule, riskyRules } from '../../../../test/support/config-rules.ts';
import { configFaults, validateModelConfig } from './config-faults.ts';
import { parseModelConfig } from './model-config.ts';

describe('the rules that a real server is held to as well', () => {
  it.each([...configRules, ...riskyRules, deadlyRule].map((rule) => [rule.name, rule] as const))(
    '%s',
    (_name, { text, ours }) => {
      const faults = configFaults(parseModelConfig(text));
      if (ours === null) expect(faults).toEqual([]);
      else expect(faults.join('; ')).toMatch(ours);
    },
  );

  it('names every fault, and the configuration', () => {
    const config = parseModelConfig('max_batch_size: -1 input { name: "x" } metric_tags { key: "a b" }');
    expect(() => validateModelConfig(config, 'config.pbtxt of m')).toThrow(
      /^config\.pbtxt of m: max_batch_size -1 is negative; input 'x' has no data_type; input 'x' has no dims; give at least one; metric_tags 'a b'/,
    );
  });
});
