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
      return { done: seen && phase === 'ready', standing: `${phase} (${reason}): ${message}` };
    },
    limitMs,
    `endpoint ${wished.name} ready`,
  );
  return latest;
}
