import type { PipelineNode, PipelineSpecInput, PipelineValue } from '@perch/contracts/plain';

declare const picked: unique symbol;
const pickText = Symbol('pick');

/** Points at a value that is there when the pipeline runs; its fields and elements are picks again. */
export type Picked<T> = { readonly [picked]: T } & (T extends readonly (infer E)[]
  ? { readonly [index: number]: Picked<E> }
  : T extends object
    ? { readonly [K in keyof T]-?: Picked<Exclude<T[K], undefined>> }
    : unknown);

/** A value with picks anywhere in it. Texts stand as they are, also those that begin with `$`. */
export type Input = string | number | boolean | null | Picked<unknown> | readonly Input[] | { readonly [key: string]: Input }; // biome-ignore format: one type

export interface NodeCondition {
  equals?: PipelineValue;
  notEquals?: PipelineValue;
  above?: number;
  below?: number;
  exists?: boolean;
}

type Plain = Pick<PipelineNode, 'isolation' | 'options' | 'timeoutMs' | 'concurrency' | 'instances' | 'device' | 'version'>; // biome-ignore format: one type

export interface NodeSettings extends Plain {
  /** Left out: the pipeline's own body. */
  input?: Input;
  /** Waits for these as well. */
  after?: readonly Picked<unknown>[];
  /** Runs only when what is picked is neither absent, null, false, 0 nor empty; its result is else null. */
  when?: Picked<unknown> | ({ pick: Picked<unknown> } & NodeCondition);
  /** Stands in when it fails or is late. */
  fallback?: Input;
}

export interface MapSettings<Item> extends Omit<NodeSettings, 'input' | 'fallback' | 'when'> {
  /** Once for each element; results come in the order of the elements. */
  over: Picked<readonly Item[]>;
  /** At once; default 8. */
  atOnce?: number;
  input: (item: Picked<Item>, index: Picked<number>) => Input;
  fallback?: (item: Picked<Item>) => Input;
  when?: Picked<unknown> | ((item: Picked<Item>) => Picked<unknown> | ({ pick: Picked<unknown> } & NodeCondition));
}

/** Where a pipeline is put together. `Reply` types what later nodes may pick of a result. */
export interface PipelineBuilder<Body> {
  readonly body: Picked<Body>;
  endpoint<Reply = unknown>(node: string, endpoint: string, settings?: NodeSettings): Picked<Reply>;
  module<Reply = unknown>(node: string, module: string, settings?: NodeSettings): Picked<Reply>;
  mapEndpoint<Item, Reply = unknown>(node: string, endpoint: string, settings: MapSettings<Item>): Picked<Reply[]>;
  mapModule<Item, Reply = unknown>(node: string, module: string, settings: MapSettings<Item>): Picked<Reply[]>;
}

export type PipelineSettings = Pick<PipelineSpecInput, 'limits' | 'access' | 'description'>;

const identifier = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const stepText = (key: string) =>
  /^-?[0-9]+$/.test(key) ? `[${key}]` : identifier.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;

function makePick<T>(text: string): Picked<T> {
  return new Proxy(Object.create(null), {
    get: (_target, key) => (key === pickText ? text : typeof key === 'string' ? makePick(text + stepText(key)) : undefined), // biome-ignore format: one row reads better
  }) as Picked<T>;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'object' && value !== null ? (value as { [pickText]?: string })[pickText] : undefined;
}

/** That value of each element of a list: `$detect.boxes[*].score`. */
export const each = <T>(list: Picked<readonly T[]>): Picked<T> => makePick(`${textOf(list)}[*]`);

/** Null where it is not there, in place of a failed request. */
export const optional = <T>(pick: Picked<T>): Picked<T | null> => makePick(`${textOf(pick)}?`);

function plain(value: Input): PipelineValue {
  if (typeof value === 'string') return value.startsWith('$') ? `$${value}` : value;
  if (typeof value !== 'object' || value === null) return value;
  const pick = textOf(value);
  if (pick !== undefined) return pick;
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one as Input)]));
}

function conditionOf(when: NodeSettings['when']): PipelineNode['when'] {
  if (when === undefined) return undefined;
  const text = textOf(when);
  if (text !== undefined) return { pick: text };
  const { pick, ...asked } = when as { pick: Picked<unknown> } & NodeCondition;
  return { pick: textOf(pick)!, ...asked };
}

const nodeOf = (pick: Picked<unknown>): string => /^\$([A-Za-z0-9_]+)/.exec(textOf(pick)!)![1]!;

function nodeSpec(to: 'endpoint' | 'module', name: string, settings: NodeSettings): PipelineNode {
  const { input, after, when, fallback, ...rest } = settings;
  const condition = conditionOf(when);
  return {
    [to]: name,
    ...rest,
    ...(input === undefined ? {} : { input: plain(input) }),
    ...(after === undefined ? {} : { after: after.map(nodeOf) }),
    ...(condition === undefined ? {} : { when: condition }),
    ...(fallback === undefined ? {} : { fallback: { value: plain(fallback) } }),
  };
}

function mapSpec<Item>(to: 'endpoint' | 'module', name: string, settings: MapSettings<Item>): PipelineNode {
  const { over, atOnce = 8, input, when, fallback, ...rest } = settings;
  const item = makePick<Item>('$item');
  const asked = typeof when === 'function' && textOf(when) === undefined ? when(item) : when;
  const node = nodeSpec(to, name, {
    ...rest,
    input: input(item, makePick('$index')),
    ...(asked === undefined ? {} : { when: asked as NonNullable<NodeSettings['when']> }),
    ...(fallback === undefined ? {} : { fallback: fallback(item) }),
  });
  return { ...node, map: { over: textOf(over)!, concurrency: atOnce } };
}

/**
 * A pipeline in TypeScript: the same specification as the YAML of kind Pipeline says. `make` is called once and answers
 * the output. Nothing is checked here but names given twice: `perch pipeline add` checks the rest.
 */
export function definePipeline<Body = Record<string, unknown>>(
  name: string,
  make: (pipeline: PipelineBuilder<Body>) => Input,
  settings: PipelineSettings = {},
): PipelineSpecInput {
  const nodes: Record<string, PipelineNode> = {};
  const add = <T>(node: string, spec: PipelineNode): Picked<T> => {
    if (Object.hasOwn(nodes, node)) throw new TypeError(`pipeline ${name}: there are two nodes ${node}`);
    nodes[node] = spec;
    return makePick(`$${node}`);
  };
  const output = make({
    body: makePick('$body'),
    endpoint: (node, endpoint, own = {}) => add(node, nodeSpec('endpoint', endpoint, own)),
    module: (node, module, own = {}) => add(node, nodeSpec('module', module, own)),
    mapEndpoint: (node, endpoint, own) => add(node, mapSpec('endpoint', endpoint, own)),
    mapModule: (node, module, own) => add(node, mapSpec('module', module, own)),
  });
  return { kind: 'Pipeline', name, nodes, output: plain(output), ...settings };
}
