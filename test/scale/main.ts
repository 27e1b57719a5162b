import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../apps/cli/src/up/embedded-postgres.source.ts';
import { Measurement } from './measure.ts';
import { commandOf, readOptions } from './options.ts';
import { tableOf, writeSection } from './report.ts';

/** `npm run scale`: one run; a table, and as the last line everything as one JSON object. */
async function main(): Promise<void> {
  const { options, write } = readOptions(process.argv.slice(2));
  const folder = await mkdtemp(join(tmpdir(), 'perch-scale-'));
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'data'),
    logFile: join(folder, 'postgres.log'),
    fast: true,
  });
  const say = (line: string) => process.stderr.write(`${line}\n`);
  try {
    const place = { postgresUrl: postgres.url, folder };
    const figures = await new Measurement(options, place, postgres.pid, say).run();
    console.log(`${commandOf(options)}\n\n${tableOf(figures)}\n`);
    if (write) await writeSection(write, figures);
    console.log(JSON.stringify(figures));
    if (!figures.converged) process.exitCode = 1;
  } catch (error) {
    process.exitCode = 1;
    say(`scale: ${error instanceof Error ? error.message : error}`);
    say(`logs are kept in ${folder}`);
  } finally {
    await postgres.stop();
    if (!process.exitCode) await rm(folder, { recursive: true, force: true });
  }
}

await main();
