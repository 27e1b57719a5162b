import { readFile } from 'node:fs/promises';
import { AppError, type BoundPipeline, type PipelineNode, type PipelineSpec } from '@perch/contracts';
import type { CallContext } from '@perch/processing';
import type { LoadedProcessing, NodeTrace, NodeTurn } from '@perch/processing/host';
import { LocalModules } from './local-module.source.ts';

/** How nodes are answered on this computer. */
export interface LocalSettings {
  body: Buffer;
  timeoutMs: number;
  /** Files of JSON by node, in place of what it answers. */
  stubs: Readonly<Record<string, string>>;
  /** Folders of modules by name, in place of registered ones. */
  modules: Readonly<Record<string, string>>;
  /** Asks an endpoint of the installation. */
  serve(path: string, body: Buffer, contentType: string, timeoutMs: number): Promise<unknown>;
  registered: ConstructorParameters<typeof LocalModules>[1];
}

export interface LocalRun {
  value: unknown;
  trace: NodeTrace[];
}

/** Runs a pipeline here as a router would: its modules in this program's own workers, its endpoints over HTTP. */
export async function runLocally(spec: PipelineSpec, settings: LocalSettings): Promise<LocalRun> {
  const { compilePipeline, runPipeline, readBody } = await import('@perch/processing/host');
  for (const node of Object.keys(settings.stubs))
    if (!Object.hasOwn(spec.nodes, node))
      throw new AppError('invalid', `--stub ${node}: the pipeline has no such node`);
  const modules = new LocalModules(settings.modules, settings.registered);
  const trace: NodeTrace[] = [];
  try {
    const loaded = await modules.load(unstubbed(spec, settings.stubs));
    const body = await readBody({}, settings.body, 'application/json');
    const request = { body, deadlineAt: performance.now() + settings.timeoutMs, signal: new AbortController().signal };
    const value = await runPipeline(
      compilePipeline(spec.name, spec as Pick<BoundPipeline, 'nodes' | 'output'>),
      request,
      {
        now: () => performance.now(),
        ended: (one) => void trace.push(one),
        run: (turn) => runNode(spec, turn, settings, loaded),
      },
    );
    return { value, trace };
  } finally {
    await modules.close();
  }
}

const unstubbed = ({ nodes }: PipelineSpec, stubs: LocalSettings['stubs']): [string, PipelineNode][] =>
  Object.entries(nodes).filter(([name]) => stubs[name] === undefined);

async function runNode(
  spec: PipelineSpec,
  turn: NodeTurn,
  settings: LocalSettings,
  loaded: ReadonlyMap<string, LoadedProcessing>,
): Promise<unknown> {
  const { endpoint, version } = spec.nodes[turn.node]!;
  const stub = settings.stubs[turn.node];
  if (stub !== undefined) return stubOf(stub);
  const isBytes = Buffer.isBuffer(turn.body);
  const bytes = isBytes ? (turn.body as Buffer) : Buffer.from(JSON.stringify(turn.body ?? null));
  const contentType = isBytes ? 'application/octet-stream' : 'application/json';
  if (endpoint !== undefined)
    return settings.serve(`/serve/${endpoint}${version === undefined ? '' : `/${version}`}`, bytes, contentType, turn.timeoutMs); // biome-ignore format: one row reads better
  const ctx = callOf(spec, turn, contentType, settings);
  const processing = loaded.get(turn.node)!;
  const { inputs, carry } = await processing.preprocess(bytes, contentType, ctx);
  const outputs = processing.process ? await processing.process(inputs, carry, ctx) : inputs;
  const reply = await processing.postprocess(outputs, carry, ctx);
  return JSON.parse(
    reply instanceof Uint8Array ? Buffer.from(reply).toString('utf8') : (JSON.stringify(reply) ?? 'null'),
  );
}

async function stubOf(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new AppError('not_found', `--stub ${file}: no such file`);
  });
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError('invalid', `--stub ${file}: is no JSON: ${(error as Error).message}`);
  }
}

function callOf(
  { name }: PipelineSpec,
  { node, signal, timeoutMs }: NodeTurn,
  contentType: string,
  settings: LocalSettings,
): CallContext {
  const endsAt = performance.now() + timeoutMs;
  const told = (words: string) => process.stderr.write(`${node}: ${words}\n`);
  return {
    requestId: 'local',
    endpoint: name,
    version: 1,
    signal,
    remainingMs: () => Math.max(0, endsAt - performance.now()),
    headers: { 'content-type': contentType },
    state: {},
    log: (level, message) => void told(`${level}: ${message}`),
    infer: async () => {
      throw new AppError('invalid', `node ${node} has no model to ask: its processing module does all the work`);
    },
    serve: (endpoint, body, options) => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body ?? null));
      return settings.serve(`/serve/${endpoint}`, bytes, options?.contentType ?? 'application/json', timeoutMs);
    },
    streams: false,
    stream: async () => undefined,
    observe: () => undefined,
    count: () => undefined,
    flag: () => undefined,
  };
}
