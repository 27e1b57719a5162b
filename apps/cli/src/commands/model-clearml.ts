import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** Flags that `model add` and `model auto-update` share, spelled as ClearML spells them. */
function servingFlags(command: Command): void {
  command
    .requiredOption('--engine <engine>', 'triton; custom or custom_async: the module of --preprocess does all the work')
    .option('--endpoint <name>', 'name of the endpoint')
    .option('--name <name>', 'the model')
    .option('--project <name>')
    .option('--tags <tags...>', 'any of them ("__$all" first: all of them)')
    .option('--published', 'only published versions')
    .option(
      '--preprocess <file>',
      'a TypeScript file is registered as a module; the name of a built-in or of a module is taken; Python is refused with what to do instead',
    )
    .option('--input-size <dims...>', '1 28 28, or one list an input: "[1,28,28]" "[3,224]"')
    .option('--input-type <types...>', 'float32 int64 …')
    .option('--input-name <names...>')
    .option('--output-size <dims...>', '-1 10')
    .option('--output-type <types...>')
    .option('--output-name <names...>')
    .option('--aux-config <pairs...>', 'platform=\\"onnxruntime_onnx\\" max_batch_size=8, or a config.pbtxt');
}

/** ClearML's verbs below `model`. */
export function defineClearmlModel(model: Command): void {
  model.commandsGroup("ClearML's verbs:");
  addVerb(model, {
    usage: 'add',
    summary: 'an endpoint that serves one version (perch endpoint add says more)',
    examples: [
      'perch --id prod model add --engine triton --endpoint test_model_pytorch --name "train pytorch model" --project "serving examples" \\\n      --input-size 1 28 28 --input-name INPUT__0 --input-type float32 --output-size -1 10 --output-name OUTPUT__0 --output-type float32',
    ],
    options: (command) => {
      servingFlags(command);
      command
        .option('--version <label>', "last segment of the endpoint's name")
        .option('--model-id <id>', 'as model upload printed it, or project/name@3');
    },
    waits: '60s',
    load: async () => ({ run: (await import('./model-add.ts')).add }),
  });
  addVerb(model, {
    usage: 'auto-update',
    summary: 'an endpoint that follows the newest versions of a model',
    examples: [
      'perch model auto-update --engine triton --endpoint test_model_auto --name "train model" --project "serving examples" --max-versions 2',
    ],
    options: (command) => {
      servingFlags(command);
      command.option('--max-versions <n>', 'the newest n stay loaded', '1');
    },
    waits: '60s',
    load: async () => ({ run: (await import('./model-add.ts')).autoUpdate }),
  });
  addVerb(model, {
    usage: 'remove',
    summary: 'remove an endpoint or a canary (the model stays in the registry)',
    examples: ['perch model remove --endpoint test_model_pytorch'],
    options: (command) => command.requiredOption('--endpoint <name>'),
    load: async () => ({ run: (await import('./model-add.ts')).remove }),
  });
  addVerb(model, {
    usage: 'canary',
    summary: 'share requests of one name out by weight (perch split add says more)',
    examples: [
      'perch model canary --endpoint test_model_canary --weights 0.1 0.9 --input-endpoints test_model/2 test_model/1',
      'perch model canary --endpoint test_model_canary --weights 0.1 0.9 --input-endpoint-prefix test_model/',
    ],
    options: (command) => {
      command
        .requiredOption('--endpoint <name>', 'the name that requests are sent to')
        .option('--weights <weights...>', 'in the order of the endpoints; below a prefix the first for the newest')
        .option('--input-endpoints <names...>', 'my_model, or my_model/1 for one version')
        .option('--input-endpoint-prefix <prefix>', 'all versions below it, newest first')
        .option('--input-endpoints-prefix <prefix>', 'the same, as ClearML’s documentation spells it');
    },
    waits: '60s',
    load: async () => ({ run: (await import('./model-canary.ts')).canary }),
  });
}
