import type { Endpoint } from '@perch/contracts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

export const run: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const body = { reason: options['reason'] ?? '' };
  const endpoint = await client.call<Endpoint>(`${endpointPath(name as string)}/resume`, { method: 'POST', body });
  return said(endpoint, `Endpoint ${name} follows its rule again.`);
};
