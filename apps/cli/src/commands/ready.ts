import { AppError, type Endpoint, type EndpointWhy } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { waitUntil } from '../wait.ts';

export const endpointPath = (name: string): string => `/endpoints/${encodeURIComponent(name)}`;

/**
 * Waits until the endpoint has taken in its newest generation and is ready. Throws at once, with the reason, when the
 * control plane says that nothing will change by itself.
 */
export async function waitReady(client: AdminClient, wished: Endpoint, limitMs: number): Promise<Endpoint> {
  let latest = wished;
  await waitUntil(
    async () => {
      latest = await client.call<Endpoint>(endpointPath(wished.name));
      const { phase, message, reason, generationSeen } = latest.status;
      const seen = generationSeen >= wished.generation;
      if (seen && phase === 'invalid')
        throw new AppError('upstream', `endpoint ${wished.name} (${reason}): ${message}`);
      const failed = latest.deployments.find(({ state }) => state === 'failed');
      if (
        seen &&
        phase !== 'ready' &&
        failed &&
        latest.deployments.every(({ state }) => ['failed', 'retired'].includes(state))
      )
        throw new AppError(
          'upstream',
          `endpoint ${wished.name}, version ${failed.version}: ${failed.reason ?? message}`,
        );
      if (!seen || phase !== 'ready') return { done: false, standing: `${phase} (${reason}): ${message}` };
      // The routing table is on its way: ready means that the next request is served.
      if ((await client.routerServes(wished.name)) === false)
        return { done: false, standing: 'ready; the router has not taken the table yet' };
      const standing = latest.spec.processing?.module && (await moduleStanding(client, wished.name));
      return standing ? { done: false, standing } : { done: true, standing: '' };
    },
    limitMs,
    `endpoint ${wished.name} ready`,
  );
  return latest;
}

/**
 * What routers still do before the newest deployment's module answers; the version alone does not tell, since it may be the
 * one that served before. Throws `module` when a router could not load it.
 */
async function moduleStanding(client: AdminClient, name: string): Promise<string | undefined> {
  const { chain } = await client.call<EndpointWhy>(`${endpointPath(name)}/why`);
  const steps = chain.filter(({ step }) => step === 'router');
  const failed = steps.find(({ state }) => state === 'failed');
  if (failed) throw new AppError('module', `endpoint ${name}: ${failed.message}`);
  return steps.find(({ state }) => state === 'waiting')?.message;
}
