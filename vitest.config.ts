import { fileURLToPath } from 'node:url';
import swc from 'unplugin-swc';
import { defineConfig } from 'vitest/config';
import { swcSettings } from './scripts/swc.mjs';

/** Vitest’s own transformer has no metadata for decorators, hence swc. */
const decorators = swc.vite(swcSettings);

/** Projects are read from their sources, so that a test never sees a stale build. */
const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const alias = [
  { find: /^@perch\/migrations$/, replacement: at('migrations/index.ts') },
  { find: /^@perch\/(\w+)\/(plain|timing|host)$/, replacement: at('libs/$1/src/$2.ts') },
  { find: /^@perch\/(platform|triton)\/(\w+)$/, replacement: at('libs/$1/src/$2/index.ts') },
  { find: /^@perch\/([a-z-]+)$/, replacement: at('libs/$1/src/index.ts') },
];

const project = (name: string, include: string[], testTimeout: number, options: { postgres?: boolean } = {}) => ({
  plugins: [decorators],
  oxc: false as const,
  resolve: { alias },
  test: {
    name,
    include,
    testTimeout,
    hookTimeout: 120_000,
    pool: 'forks' as const,
    isolate: false, // what files import is read once a worker: half of the time of the short ones; no test changes a module
    maxWorkers: 3, // they wait for programs half of the time; with more the programs would wait for each other
    globalSetup: options.postgres ? ['test/support/postgres.global.ts'] : [],
  },
});

export default defineConfig({
  test: {
    projects: [
      project(
        'unit',
        ['apps/**/*.spec.ts', 'libs/**/*.spec.ts', 'study/**/*.spec.ts', 'test/house/**/*.spec.ts'],
        10_000,
      ),
      project('contract', ['test/contract/**/*.spec.ts'], 60_000),
      project('integration', ['test/integration/**/*.spec.ts'], 60_000, { postgres: true }),
      project('scale', ['test/scale/**/*.spec.ts'], 240_000, { postgres: true }),
      project('e2e', ['test/e2e/**/*.spec.ts'], 240_000, { postgres: true }),
      // `npm run test:gpu` alone: it wants a GPU.
      ...(process.env['PERCH_GPU'] ? [project('gpu', ['test/gpu/**/*.spec.ts'], 300_000)] : []),
      // `npm run chaos` alone: it wants the machine for itself.
      ...(process.env['PERCH_CHAOS'] ? [project('chaos', ['test/chaos/**/*.spec.ts'], 600_000)] : []),
    ],
  },
});
