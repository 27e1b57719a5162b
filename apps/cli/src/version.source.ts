import { AppError, type Version } from '@perch/contracts';
import type { AdminClient } from './admin.client.ts';
import { parseReference, type VersionReference } from './reference.ts';

export const versionPath = ({ project, name, number }: { project: string; name: string; number: number }): string =>
  `/models/${project}/${name}/versions/${number}`;

/** The version a person named; without a number (or `latest`): the newest one that is complete. */
export async function findVersion(client: AdminClient, reference: VersionReference): Promise<Version> {
  const { project, name, number } = reference;
  if (typeof number === 'number') return client.call<Version>(versionPath({ project, name, number }));
  const versions = await client.list<Version>(`/models/${project}/${name}/versions`);
  const newest = versions.filter(({ state }) => state !== 'uploading').sort((a, b) => b.number - a.number)[0];
  if (!newest) throw new AppError('not_found', `model ${project}/${name} has no complete version yet`);
  return newest;
}

/** For verbs that change something: the version must be named, so that a newer one of somebody else is not hit. */
export function namedVersion(model: string, version: string | undefined): VersionReference {
  const reference = parseReference(model, version);
  if (reference.number === undefined)
    throw new AppError('invalid', `which version of ${model}? Write ${model}@3 or ${model}@latest`);
  return reference;
}
