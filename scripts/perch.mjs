/**
 * `npm run perch -- <command>`: the built CLI, in this process (signals and the terminal are its own). Installs and
 * builds what is missing first.
 */
import { ensureBuilt } from './install.mjs';

process.env.PERCH_BUILD_QUIET ??= '1';
ensureBuilt();
await import('../apps/cli/dist/main.js');
