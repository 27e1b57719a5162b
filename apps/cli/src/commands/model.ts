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
        .option('--allow-pickle', 'with --framework scikit-learn, xgboost or lightgbm: a pickled model may be loaded')
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
  defineImport(model);
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

function defineImport(model: Command): void {
  addVerb(model, {
    usage: 'import [model] [folder]',
    summary: 'upload a Hugging Face or MLflow folder, a scikit-learn, XGBoost or LightGBM file, or a Triton repository',
    examples: [
      'perch model import nlp/minilm ./all-MiniLM-L6-v2 --publish   # task, pooling, labels, length read from the folder',
      'perch model import nlp/reviews ./distilbert-sst2 --endpoint reviews',
      'perch model import risk/score ./mlruns/0/…/artifacts/model --from mlflow --publish',
      'perch model import risk/trees ./model.ubj --engine xgboost --endpoint trees',
      'perch model import risk/logit ./model.pkl --engine sklearn --method predict_proba --allow-pickle',
      'perch model import --from triton ./model_repository --project nlp --endpoint --dry-run',
    ],
    options: (command) => {
      uploading(command);
      command
        .option('--from <kind>', 'huggingface, mlflow or triton', 'huggingface')
        .option(
          '--endpoint [name]',
          'publish, and add this endpoint (by default called like the model; triton: a prefix)',
        )
        .optionsGroup('Of a Hugging Face folder:')
        .option('--onnx <path>', 'which ONNX file, where the folder holds several')
        .option(
          '--task <task>',
          'text-embedding, text-classification, image-classification, …, where config.json does not say',
        )
        .optionsGroup('Of a model file behind a Python model of Triton:')
        .option('--engine <name>', 'sklearn, xgboost or lightgbm')
        .option('--allow-pickle', 'load a pickled model (.pkl, .joblib): it runs code; kept in the audit log')
        .option('--method <name>', 'predict (the default), predict_proba, decision_function or transform')
        .option('--features <count>', 'numbers of one example; by default any')
        .option('--output-type <type>', 'FP32 (the default), FP64, INT32 or INT64')
        .optionsGroup('Of a Triton repository:')
        .option('--project <name>', 'where the models go')
        .option('--name <folder=name>', 'the Perch name of a model folder; may be repeated', many)
        .option('--dry-run', 'only say what would be imported');
    },
    waits: '60s',
    load: () => import('./model-import.ts'),
  });
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
