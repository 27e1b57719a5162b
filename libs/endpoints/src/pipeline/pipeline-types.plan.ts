import {
  type FieldFault,
  type Pick as Picked,
  type PipelineNode,
  type PipelineSpec,
  picksIn,
  type RouteTarget,
  tasks,
} from '@perch/contracts';
import { z } from 'zod';
import type { PipelineWorld } from './pipeline.plan.ts';

/** One form that a request or reply may have. */
interface Form {
  fields: string[];
  required: string[];
  /** Others are taken, too. */
  open: boolean;
}

/** What is known of what a node takes and answers; an empty list: nothing. */
interface KnownTypes {
  who: string;
  request: Form[];
  reply: Form[];
}

interface JsonSchema {
  type?: string;
  properties?: Record<string, unknown>;
  required?: string[];
  additionalProperties?: unknown;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
}

/** None where it may be anything but an object: then nothing is known of its fields. */
function formsOf(schema: JsonSchema): Form[] {
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches) {
    const forms = branches.map(formsOf);
    return forms.some((one) => one.length === 0) ? [] : forms.flat();
  }
  if (schema.type !== 'object' || !schema.properties) return [];
  const { properties, required = [], additionalProperties } = schema;
  return [{ fields: Object.keys(properties), required, open: additionalProperties !== false }];
}

const known = new Map<string, Pick<KnownTypes, 'request' | 'reply'>>();

function ofTask(task: string): Pick<KnownTypes, 'request' | 'reply'> {
  const types = Object.hasOwn(tasks, task) ? tasks[task] : undefined;
  if (!types) return { request: [], reply: [] };
  let found = known.get(task);
  if (!found) {
    const forms = (schema: z.ZodType) =>
      formsOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema);
    found = { request: forms(types.request), reply: forms(types.reply) };
    known.set(task, found);
  }
  return found;
}

/** Tensors by their names, or the protocol's own list. */
function ofTensors({ inputs, outputs }: RouteTarget): Pick<KnownTypes, 'request' | 'reply'> {
  const named: Form = {
    fields: inputs.map(({ name }) => name),
    required: inputs.filter(({ optional }) => !optional).map(({ name }) => name),
    open: false,
  };
  const list = { fields: ['inputs', 'id', 'parameters', 'outputs'], required: ['inputs'], open: false };
  const reply = [{ fields: [...outputs.map(({ name }) => name), 'outputs'], required: [], open: false }];
  return { request: inputs.length > 0 ? [named, list] : [], reply: outputs.length > 0 ? reply : [] };
}

/** Built-ins answer what their task says and nothing else; a module may answer more. */
const asBuiltin = (types: Pick<KnownTypes, 'request' | 'reply'>) => ({
  ...types,
  reply: types.reply.map((form) => ({ ...form, open: false })),
});

function typesOf(node: PipelineNode, name: string, world: PipelineWorld): KnownTypes | undefined {
  if (node.endpoint === undefined) {
    const record = world.modules.get(name);
    const task = record?.facts.task;
    return task === undefined ? undefined : { who: `module ${node.module} (${task})`, ...ofTask(task) };
  }
  const route = world.routes.get(node.endpoint);
  const target = route?.targets.find(({ version }) => node.version === undefined || version === node.version);
  if (!target) return undefined;
  const { builtin, module } = target.processing;
  const who = (words: string) => `endpoint ${node.endpoint} (${words})`;
  if (module) return module.facts.task === undefined ? undefined : { who: who(module.facts.task), ...ofTask(module.facts.task) }; // biome-ignore format: one row reads better
  if (builtin === 'passthrough') return { who: who('tensors as JSON'), ...ofTensors(target) };
  const task = builtin === 'clip' ? 'zero-shot-image-classification' : (builtin ?? '');
  return { who: who(task), ...asBuiltin(ofTask(task)) };
}

const words = (forms: readonly Form[]) =>
  [...new Set(forms.map(({ fields, required }) => (required.length > 0 ? required : fields).join(' and ')))].join(' or '); // biome-ignore format: one row reads better

const fits = (given: readonly string[]) => (form: Form) =>
  form.required.every((field) => given.includes(field)) &&
  (form.open || given.every((field) => form.fields.includes(field)));

/** What is wrong with an input that is written out; a pick as a whole may be anything. */
function inputFault(input: unknown, { who, request }: KnownTypes): string | undefined {
  if (typeof input !== 'object' || input === null || Array.isArray(input) || request.length === 0) return undefined;
  const given = Object.keys(input);
  if (request.some(fits(given))) return undefined;
  return `${who} takes ${words(request)}, and is given ${given.join(', ') || 'nothing'}`;
}

/** What is wrong with a pick of a node's result, as far as its first field. */
function pickFault({ text, steps }: Picked, isList: boolean, { who, reply }: KnownTypes): string | undefined {
  const step = steps[isList ? 1 : 0];
  if (typeof step !== 'object' || !('field' in step) || reply.length === 0) return undefined;
  if (reply.some(({ open, fields }) => open || fields.includes(step.field))) return undefined;
  return `${text}: ${who} answers ${words(reply)}, not ${step.field}`;
}

/** Inputs that their nodes are known not to take, and picks of what nodes are known not to answer. */
export function typeFaults(spec: PipelineSpec, world: PipelineWorld): FieldFault[] {
  const types = new Map(Object.entries(spec.nodes).map(([name, node]) => [name, typesOf(node, name, world)]));
  const inputs = Object.entries(spec.nodes).flatMap(([name, node]) => {
    const type = types.get(name);
    const message = type && inputFault(node.input, type);
    return message ? [{ path: `nodes.${name}.input`, message }] : [];
  });
  const picks = [...picksIn(spec.output, 'output'), ...picksIn(spec.nodes, 'nodes')].flatMap(({ path, pick }) => {
    if (typeof pick === 'string') return [];
    const type = types.get(pick.root);
    const message = type && pickFault(pick, spec.nodes[pick.root]?.map !== undefined, type);
    return message ? [{ path, message }] : [];
  });
  return [...inputs, ...picks];
}
