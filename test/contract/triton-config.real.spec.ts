import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createTritonControl, parseModelConfig, renderModelConfig, type TritonControl } from '@perch/triton/control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConfigRule, configRules, deadlyRule, riskyRules } from '../support/config-rules.ts';
import { acceptedTexts, refusedTexts } from '../support/config-texts.ts';
import { type GoldenConfig, goldenConfigs } from '../support/golden.ts';
import { scaleModel } from '../support/onnx.ts';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, putModel, startTriton } from '../support/real-triton.ts';

describe.skipIf(missingReason('triton'))('the texts our parser is held to, on a real Triton', () => {
  let server: ModelServer;
  let control: TritonControl;
  beforeAll(async () => {
    server = await startTriton({ id: 'texts' });
    control = createTritonControl({ grpc: server.grpc });
  });
  afterAll(async () => {
    control?.close();
    await server?.remove();
  });

  /** Why the server did not take a configuration: its own log line. The name at the end makes every one of them fail. */
  async function reasonOf(model: string, text: string): Promise<string> {
    await putModel(server.repository, model, { config: `${text}\nname: "another"\n`, versions: { 1: undefined } });
    await expect(control.load(model)).rejects.toThrow(/failed to poll from model repository/);
    const line = new RegExp(`Poll failed for model directory '${model}': (.*)`);
    let reason = '';
    await expect
      .poll(async () => {
        reason = line.exec(await server.tail(50))?.[1] ?? '';
        return reason;
      })
      .not.toBe('');
    return reason;
  }

  it('are taken, every one', async () => {
    for (const [index, text] of acceptedTexts.entries())
      expect(await reasonOf(`taken-${index}`, text), text).not.toMatch(/failed to read text proto/);
  });

  it('are refused, every one', async () => {
    for (const [index, text] of refusedTexts.entries())
      expect(await reasonOf(`refused-${index}`, text), text).toMatch(/failed to read text proto/);
  });
});

describe.skipIf(missingReason('triton'))('the rules our checks are held to, on a real Triton', () => {
  let server: ModelServer;
  let control: TritonControl;
  beforeAll(async () => {
    server = await startTriton({ id: 'rules' });
    control = createTritonControl({ grpc: server.grpc });
    await put({ name: 'scale', text: configRules[0]!.text, ours: null });
    await control.load('scale');
  });
  afterAll(async () => {
    control?.close();
    await server?.remove();
  });

  const put = ({ name, text }: ConfigRule) =>
    putModel(server.repository, name, {
      config: text,
      versions: { 1: text.includes('"ensemble"') ? undefined : scaleModel(2) },
    });

  /** The server's own words; empty when it took the configuration. */
  async function refusal(rule: ConfigRule): Promise<string> {
    await put(rule);
    const failure = await control.load(rule.name).then(
      () => '',
      (error: Error) => error.message,
    );
    if (!failure.includes('failed to poll from model repository')) return failure;
    let line = '';
    await expect
      .poll(
        async () => {
          line =
            new RegExp(`Poll failed for model directory '${rule.name}': (.*)`).exec(await server.tail(80))?.[1] ?? '';
          return line;
        },
        { timeout: 15_000 },
      )
      .not.toBe('');
    return line;
  }

  it('are its own', { timeout: 240_000 }, async () => {
    const wrong = new Map<string, string>();
    const judge = async (rule: ConfigRule) => {
      const words = await refusal(rule);
      if (rule.real ? rule.real.test(words) : words === '') wrong.delete(rule.name);
      else wrong.set(rule.name, words || 'taken');
      if (words === '') await control.unload(rule.name);
    };
    /** Now and then any of them ends the server, more often side by side. What does so twice, or is judged otherwise alone, is wrong. */
    const settle = async (rules: readonly ConfigRule[]) => {
      await Promise.all(rules.map(judge));
      for (const rule of rules.filter(({ name }) => wrong.has(name))) {
        if (!(await lives())) await startAgain().then(() => control.load('scale'));
        await judge(rule);
      }
    };
    for (const rule of configRules.filter(({ real }) => real)) await settle([rule]);
    const fine = configRules.filter(({ real }) => !real);
    for (let at = 0; at < fine.length; at += 6) await settle(fine.slice(at, at + 6));
    expect(Object.fromEntries(wrong)).toEqual({});
  });

  it('refuse warm-up requests that cannot run, or it ends with them', { timeout: 120_000 }, async () => {
    for (const rule of riskyRules) {
      const words = await refusal(rule);
      if (await lives()) expect(words, rule.name).toMatch(rule.real!);
      else await startAgain();
    }
  });

  it('end it where a tag is no label', async () => {
    await put(deadlyRule);
    await expect(control.load(deadlyRule.name)).rejects.toThrow();
    await expect.poll(lives).toBe(false);
  });

  const lives = () => fetch(`http://${server.http}/v2/health/live`).then(() => true, () => false); // biome-ignore format: one row

  async function startAgain(): Promise<void> {
    await server.restart();
    control.close();
    control = createTritonControl({ grpc: server.grpc });
  }
});

/** Answers each request with what it got. */
const pythonModel = `import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        echo = lambda request: pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())
        return [pb_utils.InferenceResponse([echo(request)]) for request in requests]
`;

describe.skipIf(missingReason('triton'))(
  'the golden configurations of ONNX and Python models, on a real Triton',
  () => {
    let server: ModelServer;
    let control: TritonControl;
    beforeAll(async () => {
      server = await startTriton({ id: 'golden' });
      control = createTritonControl({ grpc: server.grpc });
    });
    afterAll(async () => {
      control?.close();
      await server?.remove();
    });

    const loadable = goldenConfigs().filter(
      ({ engine, skip }) => !skip && ['onnxruntime', 'python'].includes(engine.backend),
    );

    async function put({ name, engine, files }: GoldenConfig): Promise<void> {
      const folder = join(server.repository, name);
      // The server has no GPU; instances without a kind go where it can run them.
      const all: Record<string, string | Uint8Array> = {
        'config.pbtxt': renderModelConfig(name, engine, { gpus: 0 }),
        ...files,
      };
      all[engine.backend === 'python' ? '1/model.py' : '1/model.onnx'] =
        engine.backend === 'python' ? pythonModel : scaleModel(2);
      for (const [path, content] of Object.entries(all)) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), content);
      }
    }

    it.concurrent.each(loadable.map((golden) => [golden.name, golden] as const))(
      '%s is loaded',
      async (name, golden) => {
        await put(golden);
        await control.load(name);
        expect((await control.index()).filter((entry) => entry.name === name)).toMatchObject([{ state: 'READY' }]);
        const loaded = await control.modelConfig(name);
        const asked = parseModelConfig(renderModelConfig(name, golden.engine, { gpus: 0 }));
        for (const field of ['max_batch_size', 'model_transaction_policy', 'response_cache'] as const)
          if (asked[field] !== undefined) expect(loaded[field], field).toEqual(asked[field]);
        expect(loaded.input?.map((tensor) => tensor.name)).toEqual(asked.input?.map((tensor) => tensor.name));
        await control.unload(name);
      },
    );
  },
);
