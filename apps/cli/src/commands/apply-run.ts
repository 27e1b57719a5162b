import { AppError, type ApplyResult, type Endpoint } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import type { Shown } from '../output.ts';
import { readSpecs, type SpecDocument } from '../spec/spec-file.source.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { endpointPath, waitReady } from './ready.ts';

async function documentsOf(files: readonly string[]): Promise<SpecDocument[]> {
  const documents = (await Promise.all(files.map(readSpecs))).flat();
  for (const { where, spec } of documents) {
    const kind = spec['kind'] ?? 'Endpoint';
    if (kind === 'Pipeline' || kind === 'Split')
      throw new AppError('not_available_yet', `${where}: kind ${kind} is not available yet`);
    if (kind !== 'Endpoint')
      throw new AppError('invalid', `${where}: kind: wants Endpoint, got ${JSON.stringify(kind)}`);
  }
  return documents;
}

const send = (client: AdminClient, { where, spec }: SpecDocument, dryRun: boolean): Promise<ApplyResult> =>
  client
    .call<ApplyResult>('/apply', { method: 'POST', body: spec, query: dryRun ? { dryRun: true } : {} })
    .catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      throw new AppError(error.code, `${where}: ${error.message}`, { details: error.details ?? {} });
    });

/** Every document is checked before the first one is applied: a typing error in the last one changes nothing. */
export const apply: Run = async (invocation, _args, options) => {
  const documents = await documentsOf(options['file']);
  const client = await invocation.admin();
  const checked: ApplyResult[] = [];
  for (const document of documents) checked.push(await send(client, document, true));
  if (options['dryRun']) return shownResults(checked);
  const results: ApplyResult[] = [];
  for (const document of documents) results.push(await send(client, document, false));
  const limitMs = waitMs(options['wait']);
  if (limitMs !== undefined)
    for (const { name } of results) await waitReady(client, await client.call<Endpoint>(endpointPath(name)), limitMs);
  return shownResults(results);
};

export const diff: Run = async (invocation, _args, options) => {
  const documents = await documentsOf(options['file']);
  const client = await invocation.admin();
  const results: ApplyResult[] = [];
  for (const document of documents) results.push(await send(client, document, true));
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

function resultText({ name, outcome, generation, changes, effect }: ApplyResult): string {
  const head = `Endpoint ${name} ${words[outcome]}${outcome.startsWith('would') ? '' : ` (generation ${generation})`}.`;
  const lines = changes.map(({ path, before, after }) => `  ${path}: ${side(before)} -> ${side(after)}`);
  return [head, ...lines, ...effect.map((sentence) => `  * ${sentence}`)].join('\n');
}

const shownResults = (results: readonly ApplyResult[]): Shown => ({
  value: results,
  text: () => results.map(resultText).join('\n'),
});
