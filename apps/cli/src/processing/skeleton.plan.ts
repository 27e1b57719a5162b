import { jsonSchemaOf, tasks } from '@perch/contracts';
import { beginningOf } from './beginning.plan.ts';
import { sdkName } from './sdk-name.ts';
import { typeText } from './task-text.plan.ts';

export interface SkeletonFile {
  path: string;
  text: string;
}

/** Where editors find the SDK's types on this computer. */
export interface EditorSdk {
  typesFile: string;
  nodeTypes: string | undefined;
}

const editorSettings = ({ typesFile, nodeTypes }: EditorSdk) => ({
  compilerOptions: {
    target: 'es2023',
    module: 'esnext',
    moduleResolution: 'bundler',
    lib: ['es2023'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    resolveJsonModule: true,
    experimentalDecorators: true,
    ...(nodeTypes ? { types: ['node'], typeRoots: [nodeTypes] } : {}),
    paths: { [sdkName]: [typesFile] },
  },
});

/** Files of a new module: it passes its type check and its fixture as it is. */
export function skeletonFiles(name: string, task: string | undefined, sdk?: EditorSdk): SkeletonFile[] {
  const known = task === undefined ? undefined : tasks[task];
  const types = known && {
    request: typeText(jsonSchemaOf(known.request) as never),
    reply: typeText(jsonSchemaOf(known.reply) as never),
  };
  return [
    { path: 'module.ts', text: moduleText(task, types) },
    { path: 'fixtures/first.json', text: `${JSON.stringify(fixtureOf(task), null, 2)}\n` },
    { path: 'README.md', text: readmeText(name, task, types) },
    ...(sdk ? [{ path: 'tsconfig.json', text: `${JSON.stringify(editorSettings(sdk), null, 2)}\n` }] : []),
  ];
}

const fixtureOf = (task: string | undefined) => ({
  description: 'One request and the reply that it must get.',
  ...beginningOf(task).fixture,
});

function moduleText(task: string | undefined, types: { request: string; reply: string } | undefined): string {
  const towards = types
    ? [`/** Requests of the task ${task}: ${types.request} */`, `/** Replies of the task ${task}: ${types.reply} */`]
    : [];
  const { imports, fields, given, work, reply } = beginningOf(task);
  return [
    `import { ${[...imports, 'defineProcessing'].join(', ')} } from '${sdkName}';`,
    '',
    ...towards,
    'interface Body {',
    ...fields.map((field) => `  ${field}`),
    '}',
    '',
    'export default defineProcessing({',
    ...(task === undefined ? [] : [`  task: '${task}',`]),
    '  /** Once per version and worker: open files of the version, and those beside this module, here. */',
    '  async load({ files }) {',
    '    return { names: files.list() };',
    '  },',
    '  /** The body of a request to tensors of the model. Delete `process` below, then the model is asked with these. */',
    '  preprocess(body: Body, _loaded, _ctx) {',
    '    // return { inputs: { x: float32(values, [rows, columns]) }, carry: whatever postprocess needs }',
    `    return { inputs: {}, carry: ${given} };`,
    '  },',
    '  /** In place of the one call of the model: any work, and ctx.infer as often as needed. */',
    '  process(_inputs, { carry }, _ctx) {',
    `    return ${work};`,
    '  },',
    '  /** What the model, or process, answered to the reply. */',
    '  postprocess(outputs, _state, ctx) {',
    "    ctx.count('answered');",
    `    return ${reply};`,
    '  },',
    '});',
    '',
  ].join('\n');
}

function readmeText(
  name: string,
  task: string | undefined,
  types: { request: string; reply: string } | undefined,
): string {
  const shared = types
    ? [`Modules of the task ${task} take \`${types.request}\` and answer \`${types.reply}\`.`, '']
    : [];
  return [
    `# ${name}`,
    '',
    ...shared,
    '`perch processing test .` runs it here with its fixtures; `perch processing add .` registers it; then',
    `\`perch endpoint update NAME --processing ${name}\` serves with it.`,
    '',
  ].join('\n');
}
