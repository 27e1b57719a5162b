import { builtinModules } from 'node:module';
import { describe, expect, it } from 'vitest';
import { allowedBuiltins, judgeImport } from './import-rule.plan.ts';

const builtins = new Set(builtinModules);
const listed = new Set(['papaparse', '@scope/pure', 'sharp']);
const judge = (specifier: string, by: 'module' | 'package' = 'module') =>
  judgeImport({ specifier, by }, listed, builtins);

describe('what a module may import', () => {
  it.each([
    ['@perch/processing', { left: '@perch/processing' }],
    ['node:buffer', { left: 'node:buffer' }],
    ['util', { left: 'node:util' }],
    ['node:util/types', { left: 'node:util/types' }],
    ['./labels.ts', { bundled: true }],
    ['../lexicon/words.ts', { bundled: true }],
    ['..', { bundled: true }],
    ['papaparse', { bundled: true }],
    ['papaparse/lib/x.js', { bundled: true }],
    ['@scope/pure/deep', { bundled: true }],
    ['#inner', { bundled: true }],
  ])('%s', (specifier, verdict) => expect(judge(specifier)).toEqual(verdict));

  it.each([
    ['node:fs', 'node:fs is not for modules'],
    ['fs', 'fs is not for modules'],
    ['fs/promises', 'not for modules'],
    ['node:child_process', 'not for modules'],
    ['node:worker_threads', 'not for modules'],
    ['node:module', 'not for modules'],
    ['node:vm', 'not for modules'],
    ['node:sqlite', 'not for modules'],
    ['lodash', 'package lodash is not listed'],
    ['@scope/other/deep', 'package @scope/other is not listed'],
    ['sharp', 'native code, which cannot be bundled; use decodeImage'],
    ['https://example.org/x.js', 'nothing is fetched'],
    ['data:text/javascript,1', 'nothing is fetched'],
    ['file:///etc/passwd', 'nothing is fetched'],
    ['@perch/processing/testing', 'is for tests'],
  ])('%s is refused', (specifier, words) =>
    expect(judge(specifier)).toEqual({ refused: expect.stringContaining(words) }),
  );

  it('a package that is bundled brings its own along, and no forbidden part of Node', () => {
    expect(judge('lodash', 'package')).toEqual({ bundled: true });
    expect(judge('fs', 'package')).toEqual({ refused: expect.stringContaining('not for modules') });
  });

  it('nothing that reaches files, the network, other code or the process is on the list', () => {
    for (const name of [
      'fs',
      'net',
      'http',
      'https',
      'http2',
      'dgram',
      'dns',
      'tls',
      'module',
      'vm',
      'process',
      'os',
      'child_process',
      'worker_threads',
      'cluster',
      'inspector',
      'v8',
      'repl',
      'async_hooks',
      'diagnostics_channel',
    ])
      expect(allowedBuiltins).not.toContain(name);
    for (const name of allowedBuiltins) expect(builtins.has(name)).toBe(true);
  });
});
