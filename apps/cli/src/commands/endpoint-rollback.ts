import { AppError, type Endpoint } from '@perch/contracts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { endpointPath, waitReady } from './ready.ts';

export const run: Run = async (invocation, [name], options) => {
  if (!/^\d+$/.test(options['to']))
    throw new AppError('invalid', `--to: wants a generation number, got "${options['to']}"`);
  const client = await invocation.admin();
  const body = { generation: Number(options['to']), reason: options['reason'] ?? '' };
  const after = await client.call<Endpoint>(`${endpointPath(name as string)}/rollback`, { method: 'POST', body });
  const sentence = `Endpoint ${name} is as generation ${body.generation} was (now generation ${after.generation}).`;
  const limitMs = waitMs(options['wait']);
  if (limitMs === undefined) return said(after, sentence);
  const ready = await waitReady(client, after, limitMs);
  return said(ready, `${sentence} It serves version ${ready.status.servingVersions.join(', ')}.`);
};
