import { writeFile } from 'node:fs/promises';
import { AppError } from '@perch/contracts';
import { createLogger, runProgram } from '@perch/platform';
import { migrate, migrateDown } from '@perch/platform/database';
import { databaseOptionsOf, readControlPlaneConfig, readMigrateConfig } from './control-plane.config.ts';
import { startControlPlane } from './control-plane.ts';
import { openApiText } from './openapi/document.ts';
import { controllers } from './parts.ts';
import { programVersion } from './program-version.ts';

const [mode, option, ...rest] = process.argv.slice(2);

/** `migrate [--down]`: brings the schema up to date, or takes its newest change back; prints one JSON line. */
async function runMigrate(): Promise<void> {
  const options = databaseOptionsOf(readMigrateConfig());
  if (option === '--down') await migrateDown(options);
  const migrated = option === '--down' ? [] : await migrate(options);
  process.stdout.write(`${JSON.stringify({ direction: option === '--down' ? 'down' : 'up', migrated })}\n`);
}

/** `openapi [file]`: writes the description of the admin API; needs no database. */
async function runOpenApi(): Promise<void> {
  const text = openApiText(controllers, programVersion);
  if (option) await writeFile(option, text);
  else process.stdout.write(text);
}

const once = (work: () => Promise<void>) =>
  work().catch((error: unknown) => {
    process.stderr.write(`control-plane: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = error instanceof AppError && error.code === 'invalid' ? 2 : 1;
  });

const isWrongUse =
  rest.length > 0 ||
  !['migrate', 'openapi', undefined].includes(mode) ||
  (mode === 'migrate' && option !== undefined && option !== '--down');

if (isWrongUse) {
  process.stderr.write('control-plane: wants nothing, "migrate [--down]" or "openapi [file]"\n');
  process.exitCode = 2;
} else if (mode === 'migrate') await once(runMigrate);
else if (mode === 'openapi') await once(runOpenApi);
else
  runProgram('control-plane', async () => {
    const config = readControlPlaneConfig();
    const logger = createLogger('control-plane', config.PERCH_LOG_LEVEL);
    return { app: await startControlPlane(config, logger), logger };
  });
