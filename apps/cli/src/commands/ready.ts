import { AppError, type Endpoint } from '@perch/contracts';
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
      const served = await client.routerServes(wished.name);
      return { done: served !== false, standing: 'ready; the router has not taken the table yet' };
    },
    limitMs,
    `endpoint ${wished.name} ready`,
  );
  return latest;
}
