import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../apps/cli/src/up/embedded-postgres.source.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

/** One server a test run; PERCH_TEST_POSTGRES names another one (a superuser's URL) instead. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['PERCH_TEST_POSTGRES'];
  if (given) {
    project.provide('postgresUrl', given);
    return async () => undefined;
  }
  const folder = await mkdtemp(join(tmpdir(), 'perch-test-postgres-'));
  const { chmod } = await import('node:fs/promises');
  await chmod(folder, 0o711);
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, 'data'),
    logFile: join(folder, 'log'),
    fast: true,
  });
  project.provide('postgresUrl', server.url);
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
