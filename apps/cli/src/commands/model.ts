import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';
import { defineClearmlModel } from './model-clearml.ts';

const reference = 'project/name@3, project/name@latest';

function describing(command: Command): void {
  command
    .option('--description <text>')
    .option('--metadata <key=value>', 'a fact to search by; may be repeated', many)
    .option('--source-uri <uri>', 'lineage: where the bytes came from')
    .option('--git-commit <hash>', 'lineage')
    .option('--training-run <id>', 'lineage')
    .option('--dataset <name>', 'lineage')
    .option('--parent <model@version>', 'lineage: the version it was made from');
}

function uploading(command: Command): void {
  command
    .option('--tag <tag>', 'may be repeated', many)
    .option('--framework <name>', 'onnx, tensorrt, pytorch, tensorflow, openvino, python, ensemble, custom')
    .option('--processing <name>', 'a built-in or a module (name@3) that endpoints run which say none of their own')
    .option('--isolation <how>', 'where that module runs: worker (the default), process, or inline (admins alone)')
    .option('--processing-options <json>', 'its options as one JSON object')
    .option('--publish', 'publish it when it is complete')
    .option(
      '--uses <name=model>',
      'a model that its code calls: scorer=nlp/scorer[:3][,as=parameter]; may be repeated',
      many,
    )
    .option('--new-version', 'make a new version even when the newest one holds the same bytes');
  describing(command);
}

/** `perch model …` */
export function define(program: Command): void {
  const model = program.command('model').description('Upload, find, publish and archive versions of models.');
  addVerb(model, {
    usage: 'upload [model] [path]',
    summary: 'upload a file or a folder as the next version',
    examples: [
      'perch model upload nlp/minilm ./minilm --publish --tag prod',
      'perch model upload nlp/minilm --url https://example.org/model.onnx',
      'perch model upload --name "train model" --project "serving examples" --path model.onnx   # as ClearML spells it',
    ],
    options: (command) => {
      uploading(command);
      command
        .option('--as <path>', 'path in the version, e.g. 1/model.onnx')
        .option('--url <url>', 'fetched by the control plane: http(s), s3')
        .option('--sha256 <hash>', 'with --url: what it must hash to')
        .optionsGroup("ClearML's flags:")
        .option('--name <name>', 'name of the model')
        .option('--project <name>')
        .option('--path <path>', 'file or folder')
        .option('--tags <tags...>')
        .option('--destination <uri>', 'not used: the control plane has one artifact store');
    },
    waits: '60s',
    load: () => import('./model-upload.ts'),
  });
  addVerb(model, {
    usage: 'import [model] [folder]',
    summary: 'upload a Hugging Face folder with an ONNX file, or the models of a Triton repository',
    examples: [
      'perch model import nlp/minilm ./all-MiniLM-L6-v2 --from huggingface --publish',
      'perch model import --from triton ./model_repository --project nlp --endpoint --dry-run',
      'perch model import nlp/scorer ./model_repository/scorer --from triton --publish',
    ],
    options: (command) => {
      uploading(command);
      command
        .option('--from <kind>', 'huggingface or triton (mlflow: not available yet)', 'huggingface')
        .option('--onnx <path>', 'huggingface: which ONNX file, where the folder holds several')
        .option('--project <name>', 'triton: where the models go')
        .option('--name <folder=name>', 'triton: the Perch name of a model folder; may be repeated', many)
        .option('--endpoint [prefix]', 'triton: publish, and serve each model as Triton would (prefix/name)')
        .option('--dry-run', 'triton: only say what would be imported');
    },
    waits: '60s',
    load: () => import('./model-import.ts'),
  });
  defineReading(model);
  defineChanging(model, describing);
  addVerb(model, {
    usage: 'delete <model> [version]',
    summary: 'delete a version, or a whole model; refused while an endpoint uses it',
    examples: ['perch model delete nlp/minilm@3', 'perch model delete nlp/minilm --all-versions'],
    options: (command) => void command.option('--all-versions', 'the whole model, with all its versions'),
    load: () => import('./model-delete.ts'),
  });
  defineClearmlModel(model);
}

function defineReading(model: Command): void {
  addVerb(model, {
    usage: 'list [search]',
    summary: 'models, and what endpoints serve them',
    examples: ['perch model list --tag prod', 'perch model list --project nlp --metadata accuracy=0.93 -o json'],
    options: (command) =>
      command
        .option('--project <name>')
        .option('--tag <tag>', 'on one version, all that are given', many)
        .option('--metadata <key=value>', 'all that are given must hold', many),
    load: () => import('./model-list.ts'),
  });
  addVerb(model, {
    usage: 'show <model> [version]',
    summary: 'a model with its versions, or one version with its files',
    examples: ['perch model show nlp/minilm', 'perch model show nlp/minilm@2'],
    load: () => import('./model-show.ts'),
  });
  addVerb(model, {
    usage: 'download <model> [folder]',
    summary: 'the files of a version, checked against their hashes',
    examples: [`perch model download nlp/minilm@3 ./minilm`],
    load: () => import('./model-download.ts'),
  });
}

function defineChanging(model: Command, more: (command: Command) => void): void {
  const states = [
    ['publish', 'let endpoints take it', '60s'],
    ['unpublish', 'back to draft: endpoints that take published versions leave it', undefined],
    ['archive', 'put it away; endpoints leave it', undefined],
    ['restore', 'an archived version comes back as a draft', undefined],
  ] as const;
  for (const [name, summary, waits] of states)
    addVerb(model, {
      usage: `${name} <model> [version]`,
      summary,
      examples: [`perch model ${name} nlp/minilm@3`],
      ...(waits ? { waits } : {}),
      load: async () => ({ run: (await import('./model-state.ts')).runState(name) }),
    });
  addVerb(model, {
    usage: 'tag <model> [version]',
    summary: 'add and remove tags of a version',
    examples: ['perch model tag nlp/minilm@3 --add prod --remove staging'],
    options: (command) =>
      command.option('--add <tag>', 'may be repeated', many).option('--remove <tag>', 'may be repeated', many),
    load: () => import('./model-tag.ts'),
  });
  addVerb(model, {
    usage: 'describe <model> [version]',
    summary: `change description, metadata and lineage (${reference})`,
    examples: ['perch model describe nlp/minilm@3 --description "distilled" --metadata accuracy=0.93'],
    options: more,
    load: () => import('./model-describe.ts'),
  });
}
