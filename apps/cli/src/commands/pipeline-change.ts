import { AppError, type ApplyResult, type Pipeline } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { said } from '../output.ts';
import { readPipelineFile } from '../pipeline/pipeline-file.source.ts';
import type { Run } from '../verb.ts';
import { waitMs, waitUntil } from '../wait.ts';
import { expectedGeneration } from './endpoint-update.ts';

export const pipelinePath = (name: string): string => `/pipelines/${encodeURIComponent(name)}`;

/** Waits until each node can be answered and the router knows the name and has loaded the modules. */
export async function waitPipeline(client: AdminClient, name: string, limitMs: number): Promise<Pipeline> {
  let latest!: Pipeline;
  await waitUntil(
    async () => {
      latest = await client.call<Pipeline>(pipelinePath(name));
      const { message, nodes } = latest;
      if (nodes.some(({ missing }) => missing !== null) || /on its way/.test(message)) return { done: false, standing: message }; // biome-ignore format: one row reads better
      const answer = await client
        .readServing(`/v2/models/${encodeURIComponent(name)}/ready`, 2_000)
        .catch(() => undefined);
      const standing = answer?.status === 503 ? 'modules are being loaded' : 'every node answers; the router has not taken the table yet'; // biome-ignore format: one row reads better
      return { done: answer === undefined || ![404, 503].includes(answer.status), standing };
    },
    limitMs,
    `pipeline ${name} ready`,
  );
  return latest;
}

const words: Record<ApplyResult['outcome'], string> = {
  created: 'is added',
  updated: 'is changed',
  unchanged: 'is as it should be',
  would_create: 'would be added',
  would_update: 'would change',
};

export const add: Run = async (invocation, [file], options) => {
  const body = await readPipelineFile(file as string);
  const client = await invocation.admin();
  const dryRun = options['dryRun'] === true;
  const result = await client
    .call<ApplyResult>('/apply', { method: 'POST', body, query: dryRun ? { dryRun: true } : {} })
    .catch((error) => {
      if (!(error instanceof AppError)) throw error;
      throw new AppError(error.code, `${file}: ${error.message}`, { details: error.details ?? {} });
    });
  const limitMs = waitMs(options['wait']);
  if (limitMs !== undefined && !dryRun) await waitPipeline(client, result.name, limitMs);
  else if (!dryRun) invocation.hint(`Next: perch pipeline show ${result.name}`);
  const generation = dryRun ? '' : ` (generation ${result.generation})`;
  const effect = result.effect.map((sentence) => `\n  * ${sentence}`).join('');
  return said(result, `Pipeline ${result.name} ${words[result.outcome]}${generation}.${effect}`);
};

export const remove: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const ifMatch = expectedGeneration(options['ifGeneration']);
  await client.call(pipelinePath(name as string), { method: 'DELETE', ...(ifMatch === undefined ? {} : { ifMatch }) });
  return said({ removed: name }, `Pipeline ${name} is removed; the endpoints that it asked stay.`);
};

export const rollback: Run = async (invocation, [name, text]) => {
  const client = await invocation.admin();
  const generation = expectedGeneration(text);
  const after = await client.call<Pipeline>(`${pipelinePath(name as string)}/rollback`, {
    method: 'POST',
    body: { generation },
  });
  return said(after, `Pipeline ${name} is as it was in generation ${generation} (now generation ${after.generation}).`);
};
