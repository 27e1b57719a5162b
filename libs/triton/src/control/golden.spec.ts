import { describe, expect, it } from 'vitest';
import { goldenConfigs } from '../../../../test/support/golden.ts';
import { configFaults } from './config-faults.ts';
import { parseModelConfig, writeModelConfig } from './model-config.ts';
import { mergeModelConfig, renderModelConfig } from './render-config.ts';

/** One folder for each platform and group of settings: `engine.json`, and the text that servers get. */
const golden = goldenConfigs();

describe('what is written for each platform', () => {
  it('covers every platform of the contract', () => {
    const platforms = golden.map(({ engine }) => engine.platform);
    for (const platform of ['tensorrt_plan', 'onnxruntime_onnx', 'pytorch_libtorch', 'torch_aoti', 'tensorflow_savedmodel', 'tensorflow_graphdef', 'openvino', 'python', 'ensemble', 'fil', 'dali', 'vllm', 'square'])
      expect(platforms, platform).toContain(platform);
  }); // biome-ignore format: one list

  // `npx vitest run -u` writes the texts anew; read the difference before you keep it.
  it.each(golden.map((one) => [one.name, one] as const))('%s', async (name, { engine, server, text, file }) => {
    const rendered = renderModelConfig(name, engine, server);
    await expect(rendered).toMatchFileSnapshot(file);
    expect(text, `${file} was missing`).not.toBe('');
    const parsed = parseModelConfig(text);
    expect(parsed).toEqual(
      JSON.parse(JSON.stringify(parseModelConfig(writeModelConfig(mergeModelConfig(name, engine, server))))),
    );
    expect(writeModelConfig(parsed)).toBe(text);
    expect(configFaults(parsed)).toEqual([]);
  });
});
