import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AppError, type DownloadUrl, type EndpointExport, pathFault } from '@perch/contracts';
import { downloadFiles } from '../download.apply.ts';
import { formatBytes } from '../duration.ts';
import { containerText, exportReadme } from '../export.plan.ts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';

/** `perch endpoint export NAME DIR`: a Triton repository in `DIR/models`, with what it takes to serve it. */
export const run: Run = async (invocation, [name, place], options) => {
  const client = await invocation.admin();
  const folder = resolve(place as string);
  await requireRoom(folder, options['force'] === true);
  const query = { version: options['version'] as string | undefined };
  const exported = await client.call<EndpointExport>(`/endpoints/${encodeURIComponent(name as string)}/export`, {
    query,
  });
  for (const model of exported.models) requireName(model.name);
  const files: DownloadUrl[] = [
    ...exported.models.flatMap((model) =>
      model.files.map((file) => ({ ...file, path: `models/${model.name}/${file.path}` })),
    ),
    ...exported.processing.files.map((file) => ({ ...file, path: `processing/${file.path}` })),
  ];
  const total = await downloadFiles(client, files, folder, invocation.output === 'table');
  for (const model of exported.models) {
    // Also where it stays empty: Triton wants the version folder of an ensemble.
    await mkdir(join(folder, 'models', model.name, String(model.version)), { recursive: true });
    if (model.config !== null) await writeFile(join(folder, 'models', model.name, 'config.pbtxt'), model.config);
  }
  await writeFile(join(folder, 'Containerfile'), containerText);
  await writeFile(join(folder, 'README.md'), exportReadme(exported));
  const models = exported.models.map((model) => model.name);
  return said(
    { endpoint: exported.endpoint, version: exported.version, folder, models, sizeBytes: total },
    `Version ${exported.version} of ${exported.endpoint} is in ${folder}: ${models.length} model folder${models.length === 1 ? '' : 's'} (${models.join(', ')}), ${formatBytes(total)}. README.md says how to serve it.`,
  );
};

/** What stands in the folder would be taken for a part of the export. */
export async function requireRoom(folder: string, force: boolean): Promise<void> {
  const there = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new AppError('invalid', `${folder}: ${error.code === 'ENOTDIR' ? 'is a file' : error.message}`);
  });
  if (there.length > 0 && !force)
    throw new AppError('conflict', `${folder} is not empty; name an empty folder, or go on in it with --force`);
}

export function requireName(name: string): void {
  const fault = name.includes('/') ? 'must be one segment' : pathFault(name);
  if (fault) throw new AppError('integrity', `the control plane names a model ${JSON.stringify(name)} that ${fault}`);
}
