import { createRequire } from 'node:module';

/** From the program's own package. */
export const programVersion: string = createRequire(import.meta.url)('../package.json').version;
