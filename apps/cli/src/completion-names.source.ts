import type { Endpoint, Page, Pipeline, ProcessingModuleRecord, Rollout, Webhook } from '@perch/contracts';
import type { AdminClient } from './admin.client.ts';
import { Invocation } from './invocation.ts';

/** Whoever presses Tab waits no longer. */
const mostMs = 1_000;

const page = async <T>(client: AdminClient, path: string, query: Record<string, string | number | boolean> = {}) =>
  (await client.call<Page<T>>(path, { query: { limit: 200, ...query }, timeoutMs: mostMs, once: true })).items;
const endpoints = async (client: AdminClient) => (await page<Endpoint>(client, '/endpoints')).map(({ name }) => name);
/** Endpoints with one that goes on, and ids of those. */
const rollouts = async (client: AdminClient) =>
  (await page<Rollout>(client, '/rollouts', { active: true })).flatMap(({ endpoint, id }) => [endpoint, id]);
const past = async (client: AdminClient) => [
  ...(await endpoints(client)),
  ...(await page<Rollout>(client, '/rollouts')).map(({ id }) => id),
];
const webhooks = async (client: AdminClient) => (await page<Webhook>(client, '/webhooks')).map(({ name }) => name);
const modules = async (client: AdminClient) =>
  (await page<ProcessingModuleRecord>(client, '/modules')).map(({ name }) => name);
const numberedModules = async (client: AdminClient) =>
  (await page<ProcessingModuleRecord>(client, '/modules')).map(({ name, number }) => `${name}@${number}`);

const pipelines = async (client: AdminClient) => (await page<Pipeline>(client, '/pipelines')).map(({ name }) => name);

const first: Record<string, (client: AdminClient) => Promise<string[]>> = {
  'rollout show': past,
  'rollout watch': past,
  'rollout explain': past,
  'rollout rollback': past,
  'rollout simulate': endpoints,
  'rollout start': endpoints,
  'rollout pause': rollouts,
  'rollout resume': rollouts,
  'rollout advance': rollouts,
  'rollout promote': rollouts,
  'rollout abort': rollouts,
  'pipeline show': pipelines,
  'pipeline history': pipelines,
  'pipeline run': pipelines,
  'pipeline export': pipelines,
  'pipeline remove': pipelines,
  'pipeline rollback': pipelines,
  'processing show': modules,
  'processing remove': numberedModules,
  'webhook remove': webhooks,
  'webhook test': webhooks,
};

/** Names that the installation knows for the first argument of a verb; none when it does not answer soon. */
export async function namesFor(verb: string, context: string | undefined): Promise<string[]> {
  const source = first[verb];
  if (!source) return [];
  const invocation = new Invocation(context === undefined ? {} : { context });
  try {
    return await source(await invocation.admin());
  } catch {
    return [];
  } finally {
    await invocation.close();
  }
}
