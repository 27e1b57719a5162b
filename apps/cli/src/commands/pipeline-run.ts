import { AppError, type DownloadUrl, type ProcessingModuleRecord, parseWith, pipelineSpec } from '@perch/contracts';
import type { AdminClient, RawAnswer } from '../admin.client.ts';
import { parseDuration } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import { type Shown, tableText } from '../output.ts';
import type { RegisteredModules } from '../pipeline/local-module.source.ts';
import { type LocalRun, runLocally } from '../pipeline/local-run.ts';
import { readPipelineFile } from '../pipeline/pipeline-file.source.ts';
import { parsePairs } from '../reference.ts';
import type { Options, Run } from '../verb.ts';
import { bodyOf, serveError } from './endpoint-infer.ts';

export const run: Run = async (invocation, [name], options) => {
  const body = await bodyOf(options, undefined);
  const timeoutMs = parseDuration(options['timeout'] ?? '60s', '--timeout');
  if (options['local']) return runFile(invocation, name as string, body, timeoutMs, options);
  for (const option of ['stub', 'module'])
    if (options[option]) throw new AppError('invalid', `--${option} goes with --local`);
  const client = await invocation.admin(options['router']);
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (options['trace']) headers['x-perch-trace'] = '1';
  const answer = await client.serve(`/serve/${name}`, body, headers, timeoutMs);
  const timing = answer.headers['server-timing'];
  if (options['trace'] && timing) invocation.note(timingText(timing));
  if (answer.status >= 300) throw serveError(answer, name as string);
  const text = answer.body.toString('utf8');
  return { value: JSON.parse(text), text: () => text };
};

async function runFile(
  invocation: Invocation,
  file: string,
  body: Buffer,
  timeoutMs: number,
  options: Options,
): Promise<Shown> {
  const spec = parseWith(pipelineSpec, await readPipelineFile(file), file);
  const client = () => invocation.admin(options['router']);
  const { value, trace } = await runLocally(spec, {
    body,
    timeoutMs,
    stubs: parsePairs(options['stub'], '--stub'),
    modules: parsePairs(options['module'], '--module'),
    registered: async () => registeredIn(await client()),
    serve: async (path, bytes, contentType, limitMs) =>
      jsonOf(await (await client()).serve(path, bytes, { 'content-type': contentType }, limitMs), path.slice(7)),
  });
  if (options['trace']) invocation.note(traceText(trace));
  return { value, text: () => JSON.stringify(value) };
}

function jsonOf(answer: RawAnswer, name: string): unknown {
  if (answer.status >= 300) throw serveError(answer, name);
  return JSON.parse(answer.body.toString('utf8'));
}

function registeredIn(client: AdminClient): RegisteredModules {
  const path = (name: string) => `/modules/${encodeURIComponent(name)}`;
  return {
    async find(name, number) {
      if (number !== undefined) return client.call<ProcessingModuleRecord>(`${path(name)}/${number}`);
      const [newest] = await client.list<ProcessingModuleRecord>(path(name));
      if (newest) return newest;
      throw new AppError(
        'not_found',
        `there is no processing module ${name}; name its folder with --module ${name}=DIR`,
      );
    },
    urls: ({ name, number }) => client.list<DownloadUrl>(`${path(name)}/${number}/files`),
    bytes: async (url) => {
      const { status, body } = await client.probe(url, 60_000);
      if (status === 200) return body;
      throw new AppError('unavailable', `the store answered ${status} for a file of a module`);
    },
  };
}

type Timed = Pick<LocalRun['trace'][number], 'node' | 'startMs' | 'tookMs' | 'outcome'>;

const traceText = (trace: readonly Timed[]): string =>
  tableText(trace, [
    ['node', ({ node }) => node],
    ['began', ({ startMs }) => `${startMs.toFixed(1)} ms`],
    ['took', ({ tookMs }) => `${tookMs.toFixed(1)} ms`],
    ['outcome', ({ outcome }) => outcome],
  ]);

/** What a router says in its Server-Timing header. */
export function timingText(header: string): string {
  const entries = header.split(', ').map((entry): Timed => {
    const [node, ...fields] = entry.split(';');
    const of = (name: string) => fields.find((field) => field.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
    return { node: node!, startMs: Number(of('start')), tookMs: Number(of('dur')), outcome: of('desc') as Timed['outcome'] }; // biome-ignore format: one row reads better
  });
  return traceText(entries);
}
