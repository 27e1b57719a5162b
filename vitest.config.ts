import swc from 'unplugin-swc';
import { defineConfig } from 'vitest/config';

/** Nest and TypeORM need legacy decorators with metadata; Vitest's own transformer has no metadata, hence swc. */
const decorators = swc.vite({
  module: { type: 'es6' },
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
  },
});

/** Libs are read from their sources, so that a test never sees a stale build. */
const conditions = ['perch-source', 'node', 'import'];

const project = (name: string, include: string[], testTimeout: number, parallel = true) => ({
  plugins: [decorators],
  oxc: false as const,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['node', 'import'] } },
  test: { name, include, testTimeout, hookTimeout: 60_000, pool: 'forks' as const, fileParallelism: parallel },
});

export default defineConfig({
  test: {
    projects: [
      project('unit', ['apps/**/*.spec.ts', 'libs/**/*.spec.ts', 'test/house/**/*.spec.ts'], 10_000),
      project('contract', ['test/contract/**/*.spec.ts'], 60_000),
      project('integration', ['test/integration/**/*.spec.ts'], 60_000),
      project('e2e', ['test/e2e/**/*.spec.ts'], 240_000, false),
    ],
  },
});
