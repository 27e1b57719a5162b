import type { Endpoint } from '@perch/contracts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';
import { waitMs, waitUntil } from '../wait.ts';
import { endpointPath, waitReady } from './ready.ts';

/** `stop --wait` ends when no server holds any of it any more, `start --wait` when it serves. */
export const runSwitch =
  (verb: 'stop' | 'start'): Run =>
  async (invocation, [name], options) => {
    const client = await invocation.admin();
    const path = endpointPath(name as string);
    const body = { reason: options['reason'] ?? '' };
    const after = await client.call<Endpoint>(`${path}/${verb}`, { method: 'POST', body });
    const limitMs = waitMs(options['wait']);
    if (verb === 'start') {
      if (limitMs === undefined) return said(after, `Endpoint ${name} is started; its versions are loaded again.`);
      const ready = await waitReady(client, after, limitMs);
      return said(ready, `Endpoint ${name} serves version ${ready.status.servingVersions.join(', ')} again.`);
    }
    if (limitMs !== undefined)
      await waitUntil(
        async () => {
          const { deployments, status } = await client.call<Endpoint>(path);
          const left = deployments.map(({ version, state }) => `version ${version} ${state}`).join(', ');
          return { done: deployments.length === 0 && status.reason === 'stopped', standing: left || status.message };
        },
        limitMs,
        `endpoint ${name} unloaded`,
      );
    return said(after, `Endpoint ${name} is stopped; perch endpoint start ${name} brings it back.`);
  };
