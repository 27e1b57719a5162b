import {
  AppError,
  bundlePath,
  jsonSchemaOf,
  type ProcessingModuleRecord,
  type TaskTypes,
  tasks,
} from '@perch/contracts';
import { formatAge, formatBytes } from '../duration.ts';
import { factsText, type Shown, said, shownList, tableText } from '../output.ts';
import { parseModuleReference } from '../processing/reference.plan.ts';
import { modulePath } from '../processing/register.apply.ts';
import { typeText } from '../processing/task-text.plan.ts';
import type { Run } from '../verb.ts';

const sizeOf = ({ files }: ProcessingModuleRecord) => formatBytes(files.reduce((sum, { size }) => sum + size, 0));
const columns = (now: number) =>
  [
    ['module', ({ name, number }: ProcessingModuleRecord) => `${name}@${number}`],
    ['task', ({ facts }: ProcessingModuleRecord) => facts.task],
    ['hooks', ({ facts }: ProcessingModuleRecord) => facts.hooks],
    ['size', sizeOf],
    ['by', ({ createdBy }: ProcessingModuleRecord) => createdBy],
    ['registered', ({ createdAt }: ProcessingModuleRecord) => formatAge(createdAt, now)],
  ] as const;

const list: Run = async (invocation, [search], options) => {
  const client = await invocation.admin();
  const task: string | undefined = options['task'];
  const found = await client.list<ProcessingModuleRecord>('/modules', { task, name: search });
  const none = `No modules${task ? ` of the task ${task}` : ''}. Next: perch processing new DIR`;
  const modules = shownList(found, columns(Date.now()), none);
  const types = task === undefined ? undefined : tasks[task];
  if (task === undefined) return modules;
  const known = types ? typesOf(types) : undefined;
  const head = known ? typesText(task, known) : unknownTask(task);
  return { value: { task, types: known?.schemas ?? null, modules: found }, text: () => `${head}\n\n${modules.text()}` };
};

interface KnownTypes {
  schemas: Record<string, unknown>;
  lines: [string, string][];
}

function typesOf(types: TaskTypes): KnownTypes {
  const entries = Object.entries(types).filter(([, schema]) => schema !== undefined);
  const schemas = Object.fromEntries(entries.map(([name, schema]) => [name, jsonSchemaOf(schema)]));
  return { schemas, lines: Object.entries(schemas).map(([name, schema]) => [name, typeText(schema as never)]) };
}

const typesText = (task: string, { lines }: KnownTypes): string => factsText([['task', task], ...lines]);
const unknownTask = (task: string): string =>
  `The task ${task} has no types of its own here; modules of it agree among themselves. Known: ${Object.keys(tasks).join(', ')}`;

const show: Run = async (invocation, [reference]) => {
  const client = await invocation.admin();
  const { name, number } = parseModuleReference(reference as string);
  if (number === undefined) {
    const found = await client.list<ProcessingModuleRecord>(modulePath(name));
    return shownList(found, columns(Date.now()), '');
  }
  return shownOne(await client.call<ProcessingModuleRecord>(`${modulePath(name)}/${number}`));
};

function shownOne(module: ProcessingModuleRecord): Shown {
  const { name, number, facts, files, digest, description, createdAt, createdBy } = module;
  const tensors = (specs: typeof facts.inputs) =>
    specs?.map((spec) => `${spec.name} ${spec.datatype}[${spec.shape.join(', ')}]`);
  const about = factsText([
    ['module', `${name}@${number}`],
    ['task', facts.task],
    ['hooks', facts.hooks],
    ['body', facts.body],
    ['inputs', tensors(facts.inputs)],
    ['outputs', tensors(facts.outputs)],
    ['description', description || undefined],
    ['registered', `${createdAt} by ${createdBy}`],
    ['digest', digest],
  ]);
  const table = tableText(files, [
    ['file', ({ path }) => (path === bundlePath ? `${path} (the bundle)` : path)],
    ['size', ({ size }) => formatBytes(size)],
    ['sha-256', ({ sha256 }) => sha256.slice(0, 12)],
  ]);
  return { value: module, text: () => `${about}\n\n${table}` };
}

const remove: Run = async (invocation, [reference]) => {
  const { name, number } = parseModuleReference(reference as string);
  if (number === undefined)
    throw new AppError(
      'invalid',
      `which one of ${name}? perch processing remove ${name}@3 (perch processing show ${name})`,
    );
  const client = await invocation.admin();
  await client.call(`${modulePath(name)}/${number}`, { method: 'DELETE' });
  return said(
    { removed: `${name}@${number}` },
    `Module ${name}@${number} is removed; its bytes go with the next perch gc.`,
  );
};

export const runs = { list, show, remove };
