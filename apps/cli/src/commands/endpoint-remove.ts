import type { Endpoint } from '@perch/contracts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';
import { waitMs, waitUntil } from '../wait.ts';
import { expectedGeneration } from './endpoint-update.ts';
import { endpointPath } from './ready.ts';

export const run: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const ifMatch = expectedGeneration(options['ifGeneration']);
  await client.call(endpointPath(name as string), { method: 'DELETE', ...(ifMatch === undefined ? {} : { ifMatch }) });
  const limitMs = waitMs(options['wait']);
  if (limitMs !== undefined)
    await waitUntil(
      async () => {
        const found = await client.find<Endpoint>(endpointPath(name as string));
        return { done: !found, standing: found?.status.message ?? 'gone' };
      },
      limitMs,
      `endpoint ${name} gone`,
    );
  return said({ removed: name }, `Endpoint ${name} is removed; its model stays in the registry.`);
};
