import { AppError, type Split } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import type { Invocation } from '../invocation.ts';
import { type Shown, said } from '../output.ts';
import { readSpecs } from '../spec/spec-file.source.ts';
import { splitFromFlags } from '../spec/split-flags.plan.ts';
import type { Options, Run } from '../verb.ts';
import { waitMs, waitUntil } from '../wait.ts';
import { expectedGeneration } from './endpoint-update.ts';

export const splitPath = (name: string): string => `/splits/${encodeURIComponent(name)}`;

/**
 * Waits until everything the split names serves and the router knows the name. Throws at once when a version failed: that
 * does not change by itself. A weight below a prefix for which there is no version is not waited for.
 */
export async function waitSplit(client: AdminClient, name: string, limitMs: number): Promise<Split> {
  let latest!: Split;
  await waitUntil(
    async () => {
      latest = await client.call<Split>(splitPath(name));
      const missing = latest.arms.filter((arm) => arm.missing !== null && arm.target !== '');
      const failed = missing.find((arm) => /^version \d+ failed/.test(arm.missing!));
      if (failed) throw new AppError('upstream', `split ${name}: ${failed.target}: ${failed.missing}`);
      const serves = latest.arms.some((arm) => arm.missing === null);
      if (missing.length > 0 || !serves) return { done: false, standing: latest.message };
      const known = await client.routerServes(name);
      return { done: known !== false, standing: 'it serves; the router has not taken the table yet' };
    },
    limitMs,
    `split ${name} ready`,
  );
  return latest;
}

async function shown(
  invocation: Invocation,
  client: AdminClient,
  made: Split,
  options: Options,
  what: string,
): Promise<Shown> {
  const limitMs = waitMs(options['wait']);
  const latest = limitMs === undefined ? made : await waitSplit(client, made.name, limitMs);
  if (limitMs === undefined) invocation.hint(`Next: perch split show ${made.name}`);
  return said(latest, `Split ${made.name} is ${what} (generation ${made.generation}): ${latest.message}.`);
}

async function fromFile(file: string | undefined, name: string): Promise<Record<string, unknown>> {
  if (file === undefined) return {};
  const documents = await readSpecs(file);
  if (documents.length !== 1)
    throw new AppError('invalid', `${file}: holds ${documents.length} documents; perch apply -f takes several`);
  const { spec } = documents[0]!;
  if ((spec['kind'] ?? 'Split') !== 'Split')
    throw new AppError('invalid', `${file}: kind: wants Split, got ${JSON.stringify(spec['kind'])}`);
  if (spec['name'] !== undefined && spec['name'] !== name)
    throw new AppError('invalid', `${file} is for split ${spec['name']}, and ${name} was asked for`);
  return spec;
}

export const add: Run = async (invocation, [name], options) => {
  const spec = splitFromFlags(name as string, options, await fromFile(options['file'], name as string));
  if (!spec.targets && !spec.targetPrefix)
    throw new AppError('invalid', 'where to? Give --target NAME=WEIGHT, or --prefix with --newest-first, or -f');
  const client = await invocation.admin();
  const made = await client.call<Split>('/splits', { method: 'POST', body: spec });
  return shown(invocation, client, made, options, 'added');
};

export const update: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const before = await client.call<Split>(splitPath(name as string));
  const body = splitFromFlags(name as string, options, before.spec);
  // Flags speak about the generation that was read just now: a change in between is told, never overwritten.
  const ifMatch = expectedGeneration(options['ifGeneration']) ?? before.generation;
  const after = await client.call<Split>(splitPath(name as string), { method: 'PUT', body, ifMatch });
  if (after.generation === before.generation) return said(after, `Split ${name} already is as the flags say.`);
  return shown(invocation, client, after, options, 'changed');
};

export const remove: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const ifMatch = expectedGeneration(options['ifGeneration']);
  await client.call(splitPath(name as string), { method: 'DELETE', ...(ifMatch === undefined ? {} : { ifMatch }) });
  return said({ removed: name }, `Split ${name} is removed; the endpoints it sent to go on.`);
};
