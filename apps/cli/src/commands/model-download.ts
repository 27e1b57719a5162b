import { resolve } from 'node:path';
import type { DownloadUrl } from '@perch/contracts';
import { downloadFiles } from '../download.apply.ts';
import { formatBytes } from '../duration.ts';
import { said } from '../output.ts';
import { parseReference, versionText } from '../reference.ts';
import type { Run } from '../verb.ts';
import { findVersion, versionPath } from '../version.source.ts';

export const run: Run = async (invocation, [model, place]) => {
  const client = await invocation.admin();
  const version = await findVersion(client, parseReference(model as string));
  const folder = resolve(place ?? `${version.name}-${version.number}`);
  const files = await client.list<DownloadUrl>(`${versionPath(version)}/files`);
  const total = await downloadFiles(client, files, folder, invocation.output === 'table');
  const value = { version, folder, files: files.map(({ path, sha256, size }) => ({ path, sha256, size })) };
  return said(
    value,
    `${versionText(version)}: ${files.length} files, ${formatBytes(total)} in ${folder}, every hash right.`,
  );
};
