import { AppError, type ApplyResult, type Endpoint } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import type { Shown } from '../output.ts';
import { readSpecs, type SpecDocument } from '../spec/spec-file.source.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { waitPipeline } from './pipeline-change.ts';
import { endpointPath, waitReady } from './ready.ts';
import { waitSplit } from './split-change.ts';

const kinds = ['Endpoint', 'Split', 'Pipeline'] as const;
type Kind = (typeof kinds)[number];
const kindOf = ({ spec }: SpecDocument): Kind => (spec['kind'] ?? 'Endpoint') as Kind;

/** Endpoints first: splits name them, and pipelines both; of pipelines those first that others ask. */
async function documentsOf(files: readonly string[]): Promise<SpecDocument[]> {
  const documents = (await Promise.all(files.map(readSpecs))).flat();
  for (const { where, spec } of documents) {
    const kind = spec['kind'] ?? 'Endpoint';
    if (!kinds.some((one) => one === kind))
      throw new AppError('invalid', `${where}: kind: wants Endpoint, Split or Pipeline, got ${JSON.stringify(kind)}`);
  }
  const of = (kind: Kind) => documents.filter((document) => kindOf(document) === kind);
  return [...of('Endpoint'), ...of('Split'), ...askedFirst(of('Pipeline'))];
}

function askedFirst(pipelines: readonly SpecDocument[]): SpecDocument[] {
  const asks = ({ spec }: SpecDocument) =>
    Object.values((spec['nodes'] ?? {}) as Record<string, { endpoint?: string } | null>).map((node) => node?.endpoint);
  const left = [...pipelines];
  const sorted: SpecDocument[] = [];
  while (left.length > 0) {
    const at = left.findIndex((one) => !left.some((other) => other !== one && asks(one).includes(other.spec['name'] as string))); // biome-ignore format: one row reads better
    sorted.push(...left.splice(Math.max(0, at), 1)); // in a ring whoever comes first is refused
  }
  return sorted;
}

interface Applied extends ApplyResult {
  kind: Kind;
}

/** `coming`: names of the same files, which a dry run of a split or a pipeline takes as there. */
async function send(
  client: AdminClient,
  document: SpecDocument,
  dryRun: boolean,
  coming: readonly string[] = [],
): Promise<Applied> {
  const kind = kindOf(document);
  const assume = kind !== 'Endpoint' && coming.length > 0 ? { assume: coming.join(',') } : {};
  const query = dryRun ? { dryRun: true, ...assume } : {};
  try {
    const result = await client.call<ApplyResult>('/apply', { method: 'POST', body: document.spec, query });
    return { ...result, kind };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, `${document.where}: ${error.message}`, { details: error.details ?? {} });
  }
}

async function check(client: AdminClient, documents: readonly SpecDocument[]): Promise<Applied[]> {
  const named = (wanted: readonly Kind[]) =>
    documents.flatMap((document) => (wanted.includes(kindOf(document)) ? [document.spec['name']] : []));
  const texts = (names: readonly unknown[]) => names.filter((name) => typeof name === 'string');
  const coming = { Endpoint: [], Split: texts(named(['Endpoint'])), Pipeline: texts(named(kinds)) };
  const checked: Applied[] = [];
  for (const document of documents) checked.push(await send(client, document, true, coming[kindOf(document)]));
  return checked;
}

/** Every document is checked before the first one is applied: a typing error in the last one changes nothing. */
export const apply: Run = async (invocation, _args, options) => {
  const documents = await documentsOf(options['file']);
  const client = await invocation.admin();
  const checked = await check(client, documents);
  if (options['dryRun']) return shownResults(checked);
  const results: Applied[] = [];
  for (const document of documents) results.push(await send(client, document, false));
  const limitMs = waitMs(options['wait']);
  if (limitMs !== undefined) for (const result of results) await waitApplied(client, result, limitMs);
  return shownResults(results);
};

async function waitApplied(client: AdminClient, { kind, name }: Applied, limitMs: number): Promise<void> {
  if (kind === 'Split') await waitSplit(client, name, limitMs);
  else if (kind === 'Pipeline') await waitPipeline(client, name, limitMs);
  else await waitReady(client, await client.call<Endpoint>(endpointPath(name)), limitMs);
}

export const diff: Run = async (invocation, _args, options) => {
  const documents = await documentsOf(options['file']);
  const results = await check(await invocation.admin(), documents);
  const changed = results.some(({ outcome }) => outcome !== 'unchanged');
  return { ...shownResults(results), exitCode: changed ? 1 : 0 };
};

const words: Record<ApplyResult['outcome'], string> = {
  created: 'is added',
  updated: 'is changed',
  unchanged: 'is as it should be',
  would_create: 'would be added',
  would_update: 'would change',
};

const side = (value: unknown) => (value === undefined ? '(nothing)' : JSON.stringify(value));

function resultText({ kind, name, outcome, generation, changes, effect }: Applied): string {
  const head = `${kind} ${name} ${words[outcome]}${outcome.startsWith('would') ? '' : ` (generation ${generation})`}.`;
  const lines = changes.map(({ path, before, after }) => `  ${path}: ${side(before)} -> ${side(after)}`);
  return [head, ...lines, ...effect.map((sentence) => `  * ${sentence}`)].join('\n');
}

const shownResults = (results: readonly Applied[]): Shown => ({
  value: results,
  text: () => results.map(resultText).join('\n'),
});
