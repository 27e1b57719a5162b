import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';
import { defineTruth } from './endpoint-truth.ts';

function engineFlags(command: Command): void {
  command
    .optionsGroup('How the model server runs it:')
    .option('--platform <name>', 'onnxruntime_onnx, tensorrt_plan, … (read from the files when left out)')
    .option(
      '--format-priority <formats>',
      'the first that the version holds and the server can run: tensorrt_plan,onnxruntime_onnx',
    )
    .option('--max-batch <n>', '0: no batch dimension')
    .option('--batch-delay-us <µs>', 'dynamic batching: wait at most so long')
    .option('--preferred-batch <sizes>', 'dynamic batching, e.g. 8,16')
    .option('--queue-size <n>', 'dynamic batching: requests beyond it fail at once')
    .option('--instances <kind:count>', 'cpu:2, gpu:1, gpu:1:0,1 (on these GPUs); may be repeated', many)
    .option('--accelerator <name>', 'tensorrt:precision=FP16,workspace=1GiB, openvino, …; may be repeated', many)
    .option('--parameter <key=value>', 'for the back-end, e.g. INFERENCE_MODE=true; may be repeated', many)
    .option('--response-cache <yes>', 'true or false: answer equal requests from the server’s cache')
    .option('--decoupled <yes>', 'true or false: a request may have many answers or none')
    .option('--memory <size>', 'first guess of what it takes on one server, until it was measured')
    .option('--tensorrt-version <version>', 'that built the plan, where the file does not tell')
    .option('--compute-capability <list>', 'of the GPUs a plan was built for: 8.6,8.9 or any')
    .option('--input <name:type:dims>', 'input_ids:INT64:-1,-1; may be repeated', many)
    .option('--output-tensor <name:type:dims>', 'may be repeated', many)
    .option('--config <file>', 'your config.pbtxt, merged over ours')
    .option('--default-model-filename <name>')
    .option('--folder <name>', 'of a version that holds several model folders the one to serve');
}

function specFlags(command: Command): void {
  command
    .optionsGroup('What is served:')
    .option('--model <project/name>', 'project/name@3 serves that version alone')
    .option(
      '--source <server/model>',
      'what a Triton without an agent holds: <server or pool>/<its model>, instead of --model',
    )
    .option('--versions <numbers>', 'only these, e.g. 1,2')
    .option('--tag <tag>', 'only versions with this tag; may be repeated', many)
    .option('--tag-match <how>', 'any or all')
    .option('--drafts', 'versions that are not published too')
    .option('--max-versions <n>', 'the newest n stay loaded')
    .option(
      '--processing <name>',
      'a built-in (passthrough, text-embedding, …), a module (name@3, or name for the newest), or "version" for what the version carries',
    )
    .option('--isolation <how>', 'where a module runs: worker (the default), process, or inline (admins alone)')
    .option('--processing-options <json>', 'all options of the processing as one JSON object')
    .option('--option <key=value>', 'option of the processing; may be repeated', many)
    .optionsGroup('How it is served:')
    .option('--pool <name>')
    .option(
      '--label <name=value>',
      'only servers of the pool with this label; may be repeated; "name=" takes it back',
      many,
    )
    .option('--replicas <n>')
    .option('--min-replicas <n>', 'serve from so many ready servers on; drains and moves never go below it (1)')
    .option('--traffic <mode>', 'newest, weighted or progressive')
    .option('--weight <version=weight>', 'weighted: 3=90; may be repeated', many)
    .option('--newest-first <weights>', 'weighted: 0.1,0.9')
    .option('--policy <name>', 'progressive: default or quick; one of your own goes in a file with -f')
    .option('--sticky <header>', 'one user, named by this header, stays on one version; none ends it')
    .option('--timeout <time>', '2s')
    .option('--max-body <size>', '4MiB')
    .option('--access <who>', 'key or public')
    .option('--idempotent <yes>', 'true or false: may a request be sent twice')
    .option('--description <text>');
  engineFlags(command);
}

const updateExamples = [
  'perch endpoint update text/minilm --max-versions 3 --timeout 5s --wait',
  'perch endpoint update text/ner --processing ner/rules --wait     # to the newest module',
];

const reason = (command: Command) => command.option('--reason <text>', 'for the history');

/** `perch endpoint …` */
export function define(program: Command): void {
  const endpoint = program.command('endpoint').description('Serve a model under a stable name.');
  addVerb(endpoint, {
    usage: 'add <name>',
    summary: 'serve a model: the newest published version from now on, or one version',
    examples: [
      'perch endpoint add text/minilm --model nlp/minilm --processing text-embedding --max-versions 2 --wait',
      'perch endpoint add iris --model demo/iris@3 --access public',
      'perch endpoint add text/ner --model nlp/ner --processing ner/rules@3 --isolation process',
      'perch endpoint add text/minilm -f endpoint.yaml',
    ],
    options: (command) => {
      command.option('-f, --file <file>', 'the whole specification as YAML or JSON; flags go over it');
      specFlags(command);
    },
    waits: '60s',
    load: () => import('./endpoint-add.ts'),
  });
  addVerb(endpoint, {
    usage: 'update <name>',
    summary: 'change what the flags name, and leave the rest',
    examples: updateExamples,
    options: (command) => {
      command.option('--if-generation <n>', 'only if nobody changed it since');
      specFlags(command);
    },
    waits: '60s',
    load: () => import('./endpoint-update.ts'),
  });
  defineReading(endpoint);
  addVerb(endpoint, {
    usage: 'rollback <name>',
    summary: 'make the specification of an earlier generation the newest one',
    examples: ['perch endpoint rollback text/minilm --to 4 --reason "slow"'],
    options: (command) => void reason(command.requiredOption('--to <generation>', 'perch endpoint history shows them')),
    waits: '60s',
    load: () => import('./endpoint-rollback.ts'),
  });
  addVerb(endpoint, {
    usage: 'remove <name>',
    summary: 'stop serving it; the model stays in the registry',
    examples: ['perch endpoint remove text/minilm --wait'],
    options: (command) => void command.option('--if-generation <n>', 'only if nobody changed it since'),
    waits: '60s',
    load: () => import('./endpoint-remove.ts'),
  });
  addVerb(endpoint, {
    usage: 'infer <name> [version]',
    summary: 'send one request to it',
    examples: [
      `perch endpoint infer text/minilm --json '{"text": "good morning"}'`,
      'perch endpoint infer text/minilm 1 --file request.json     # pinned to version 1',
      'cat request.json | perch endpoint infer text/minilm -',
    ],
    options: (command) =>
      command
        .option('--json <body>', 'the body of the request')
        .option('--file <file>', 'the body from a file; - reads it from the standard input')
        .option('--header <name=value>', 'may be repeated', many)
        .option('--router <url>', 'which router to ask')
        .option('--timeout <time>', '30s'),
    load: () => import('./endpoint-infer.ts'),
  });
  defineTruth(endpoint);
  defineTraffic(endpoint);
  defineExport(endpoint);
}

function defineReading(endpoint: Command): void {
  addVerb(endpoint, {
    usage: 'list',
    summary: 'all endpoints, and what serves them',
    examples: ['perch endpoint list', 'perch endpoint list -o json'],
    load: () => import('./endpoint-list.ts'),
  });
  addVerb(endpoint, {
    usage: 'show <name>',
    summary: 'state, versions and servers of one endpoint',
    examples: ['perch endpoint show text/minilm'],
    load: () => import('./endpoint-show.ts'),
  });
  addVerb(endpoint, {
    usage: 'history <name>',
    summary: 'every generation: who, when, why',
    examples: ['perch endpoint history text/minilm'],
    load: () => import('./endpoint-history.ts'),
  });
}

function defineExport(endpoint: Command): void {
  addVerb(endpoint, {
    usage: 'export <name> <folder>',
    summary: 'write a Triton repository and a Containerfile that serve it without Perch',
    examples: [
      'perch endpoint export text/minilm ./minilm-export',
      'perch endpoint export text/minilm ./v3 --version 3',
    ],
    options: (command) =>
      void command
        .option('--version <n>', 'which version (the newest that serves when left out)')
        .option('--force', 'go on in a folder that is not empty'),
    load: () => import('./endpoint-export.ts'),
  });
}

function defineTraffic(endpoint: Command): void {
  addVerb(endpoint, {
    usage: 'resume <name>',
    summary: 'let its auto-update rule go on after a rollback by a person',
    examples: ['perch endpoint resume text/minilm --reason "version 9 is fixed"'],
    options: (command) => void reason(command),
    load: () => import('./endpoint-resume.ts'),
  });
  addVerb(endpoint, {
    usage: 'quarantine <name>',
    summary: 'what its rollouts refused and why; none of it is deployed again until it is released',
    examples: ['perch endpoint quarantine text/minilm', 'perch endpoint quarantine text/minilm --release 3f9c01d2a77b'],
    options: (command) => void command.option('--release <digest>', 'let the rule deploy it again; 8 digits or more'),
    load: () => import('./endpoint-quarantine.ts'),
  });
}
