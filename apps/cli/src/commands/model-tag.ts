import { AppError, type Version } from '@perch/contracts';
import { said } from '../output.ts';
import { versionText } from '../reference.ts';
import type { Run } from '../verb.ts';
import { findVersion, namedVersion, versionPath } from '../version.source.ts';

export const run: Run = async (invocation, [model, number], options) => {
  const body = { add: options['add'] ?? [], remove: options['remove'] ?? [] };
  if (body.add.length + body.remove.length === 0)
    throw new AppError('invalid', 'nothing to change: give --add TAG or --remove TAG');
  const client = await invocation.admin();
  const version = await findVersion(client, namedVersion(model as string, number));
  const after = await client.call<Version>(`${versionPath(version)}/tags`, { method: 'POST', body });
  return said(after, `${versionText(after)} has the tags: ${after.tags.join(', ') || 'none'}.`);
};
