import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allImports, arrows, brokenRules, importsOf, packagesLoadedWith, sourceFiles } from './arrows.ts';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');

describe('the arrows of the house', () => {
  it('every import of every project keeps the rules', () => {
    const imports = allImports(root);
    expect(imports.length).toBeGreaterThan(200);
    expect(brokenRules(imports)).toEqual([]);
  });

  it('knows every project there is', () => {
    const projects = ['apps', 'libs'].flatMap((top) =>
      readdirSync(join(root, top)).filter((name) => existsSync(join(root, top, name, 'package.json'))),
    );
    expect(projects.filter((name) => !(name in arrows))).toEqual([]);
  });

  it.each([
    ['libs/routing/src/pick.ts', `import { x } from '@perch/platform';`, 'routing may not import @perch/platform'],
    [
      'apps/agent/src/a.ts',
      `import { x } from '@perch/platform/database';`,
      'agent may not import @perch/platform/database',
    ],
    ['apps/cli/src/a.ts', `export { x } from '@perch/registry';`, 'cli may not import @perch/registry'],
    ['apps/cli/src/a.ts', `const x = await import('@perch/registry');`, 'cli may not import @perch/registry'],
    ['libs/fleet/src/a.ts', `import '@aws-sdk/client-s3';`, '@aws-sdk/client-s3 only in registry'],
    ['apps/router/src/a.ts', `import grpc from '@grpc/grpc-js';`, '@grpc/grpc-js only in triton'],
    ['libs/sync/src/a.ts', `import { Counter } from 'prom-client';`, 'prom-client only in platform'],
    [
      'libs/sync/src/sync.plan.ts',
      `import { readFile } from 'node:fs/promises';`,
      'pure code may not import node:fs/promises',
    ],
    ['libs/endpoints/src/a.ts', `import { x } from '../../fleet/src/index.ts';`, 'leaves the project'],
    ['libs/fleet/src/fleet.plan.ts', `import { DataSource } from 'typeorm';`, 'typeorm only in'],
  ])('refuses %s with %s', (file, code, fault) => {
    expect(brokenRules(importsOf(file, code)).join('\n')).toContain(fault);
  });

  it.each([
    'libs/contracts/src/plain.ts',
    'libs/processing/src/index.ts',
    'libs/processing/src/isolation/thread.entry.ts',
    'libs/processing/src/isolation/child.entry.ts',
  ])('a module starts with nothing that takes long: %s', (entry) => {
    const heavy = packagesLoadedWith(root, entry).filter((name) => !name.startsWith('node:'));
    expect(heavy.filter((name) => name !== '@perch/contracts/plain')).toEqual([]);
  });

  it('finds what would be loaded with a file', () => {
    expect(packagesLoadedWith(root, 'libs/processing/src/host.ts')).toContain('@perch/contracts');
    expect(packagesLoadedWith(root, 'libs/contracts/src/index.ts')).toContain('zod');
  });

  it('reads no import out of a comment', () => {
    expect(importsOf('libs/a/src/a.ts', `/* import 'x'; */\n// import 'y';\n`)).toEqual([]);
  });
});

describe('the manners of the house', () => {
  const files = sourceFiles(root);

  it('no file is over 300 lines', () => {
    const long = files.filter((file) => !file.endsWith('.gen.ts') && read(file).split('\n').length > 301);
    expect(long).toEqual([]);
  });

  it('the environment is read in settings files only', () => {
    const readers = files.filter((file) => !file.endsWith('.config.ts') && /\bprocess\.env\b/.test(read(file)));
    expect(readers).toEqual([]);
  });

  it('no file has a name that says nothing', () => {
    const vague =
      /(^|[./-])(util|utils|helper|helpers|common|misc|manager|handler|processor|base|abstract|impl)([./-])/;
    expect(files.filter((file) => vague.test(file))).toEqual([]);
  });

  it('no constructor takes more than five parameters', () => {
    const wide = files.filter((file) =>
      [...read(file).matchAll(/constructor\(([^)]*(?:\([^)]*\)[^)]*)*)\)\s*\{/g)].some(
        (match) =>
          (match[1] ?? '')
            .replace(/@\w+\([^)]*\)/g, '')
            .replace(/<[^>]*>/g, '')
            .split(',')
            .filter((part) => part.trim()).length > 5,
      ),
    );
    expect(wide).toEqual([]);
  });

  it('every project says what it is in a README', () => {
    const projects = ['apps', 'libs'].flatMap((top) => readdirSync(join(root, top)).map((name) => `${top}/${name}`));
    const silent = projects.filter(
      (project) => existsSync(join(root, project, 'package.json')) && !existsSync(join(root, project, 'README.md')),
    );
    expect(silent).toEqual([]);
  });

  it('every dependency is pinned to one version', () => {
    const manifests = [
      'package.json',
      'migrations/package.json',
      ...['apps', 'libs'].flatMap((top) => readdirSync(join(root, top)).map((name) => `${top}/${name}/package.json`)),
    ];
    const loose = manifests
      .filter((file) => existsSync(join(root, file)))
      .flatMap((file) => {
        const { dependencies = {}, devDependencies = {} } = JSON.parse(read(file));
        return Object.entries({ ...dependencies, ...devDependencies })
          .filter(([, range]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(range)))
          .map(([name]) => `${file}: ${name}`);
      });
    expect(loose).toEqual([]);
  });
});
