import { AppError, type Endpoint } from '@perch/contracts';
import { said } from '../output.ts';
import { specFromFlags } from '../spec/flags.plan.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { configOf } from './endpoint-add.ts';
import { endpointPath, waitReady } from './ready.ts';

/** Generation of `--if-generation`, if given. */
export function expectedGeneration(option: unknown): number | undefined {
  if (option === undefined) return undefined;
  if (!/^\d+$/.test(String(option))) throw new AppError('invalid', `--if-generation: wants a number, got "${option}"`);
  return Number(option);
}

export const run: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const before = await client.call<Endpoint>(endpointPath(name as string));
  const body = specFromFlags(options, before.spec, await configOf(options));
  // Flags speak about the generation that was read just now: a change in between is told, never overwritten.
  const ifMatch = expectedGeneration(options['ifGeneration']) ?? before.generation;
  const after = await client.call<Endpoint>(endpointPath(name as string), { method: 'PUT', body, ifMatch });
  if (after.generation === before.generation) return said(after, `Endpoint ${name} already is as the flags say.`);
  const limitMs = waitMs(options['wait']);
  if (limitMs === undefined) return said(after, `Endpoint ${name} is changed (generation ${after.generation}).`);
  const ready = await waitReady(client, after, limitMs);
  return said(
    ready,
    `Endpoint ${name} serves version ${ready.status.servingVersions.join(', ')} by generation ${ready.generation}.`,
  );
};
