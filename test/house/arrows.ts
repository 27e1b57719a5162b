import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** Who may import whom, written out. A project may import what stands here and nothing else of ours. */
export const arrows: Record<string, readonly string[]> = {
  contracts: [],
  migrations: [],
  platform: ['contracts'],
  access: ['contracts', 'platform', 'platform/database'],
  registry: ['contracts', 'platform', 'platform/database'],
  fleet: ['contracts', 'platform', 'platform/database'],
  endpoints: ['contracts', 'registry', 'fleet', 'platform', 'platform/database'],
  promotion: ['contracts', 'endpoints', 'platform', 'platform/database'],
  triton: ['contracts', 'platform'],
  sync: ['contracts', 'triton/control', 'triton/inference', 'platform'],
  routing: ['contracts'],
  // every thread of a module loads it: nothing of the programs' own
  processing: ['contracts', 'contracts/plain', 'platform/timing'],
  cli: ['contracts', 'processing', 'processing/bundle', 'processing/host'],
  'control-plane': [
    'contracts', 'access', 'registry', 'endpoints', 'fleet', 'promotion', 'processing/host', 'triton/control', 'platform',
    'platform/database',
    'migrations',
  ], // biome-ignore format: one list
  agent: ['contracts', 'sync', 'triton/control', 'triton/inference', 'platform'],
  engine: ['contracts', 'triton/server', 'triton/control', 'platform'],
  router: ['contracts', 'routing', 'processing', 'processing/host', 'triton/inference', 'platform'],
};

/** Packages that one project alone may import. */
const ownedPackages: { pattern: RegExp; project: string }[] = [
  { pattern: /^@aws-sdk\//, project: 'registry' },
  { pattern: /^@grpc\/grpc-js$/, project: 'triton' },
  { pattern: /^prom-client$/, project: 'platform' },
];

/** Files whose decisions are pure: values in, values out. */
const isPure = (file: string) => /(^|\/)libs\/routing\//.test(file) || /\.(plan|decide)\.ts$/.test(file);
const effects = /^(@nestjs\/|typeorm$|@aws-sdk\/|@grpc\/|pg$|undici$|node:(fs|net|http|https|child_process))/;

/** TypeORM stays where rows are: entities, stores, migrations, the database entry, and services that open a transaction. */
const mayUseTypeorm = (file: string) =>
  /\.(entity|store|service|module)\.ts$/.test(file) || /^(migrations\/|libs\/platform\/src\/database\/)/.test(file);

export interface Import {
  file: string;
  specifier: string;
}

/** One sentence for each import that breaks a rule; [] when the house is in order. */
export function brokenRules(imports: readonly Import[]): string[] {
  return imports.flatMap(({ file, specifier }) => {
    const project = projectOf(file);
    if (!project) return [];
    const faults: string[] = [];
    if (specifier.startsWith('@perch/')) {
      const wanted = specifier.slice('@perch/'.length);
      const own = wanted.split('/')[0] === project;
      if (!own && !arrows[project]?.includes(wanted)) faults.push(`${file}: ${project} may not import ${specifier}`);
    } else if (specifier.startsWith('.')) {
      const target = relative('/', resolve('/', dirname(file), specifier));
      if (projectOf(target) !== project) faults.push(`${file}: ${specifier} leaves the project; import @perch/…`);
    }
    for (const { pattern, project: owner } of ownedPackages)
      if (pattern.test(specifier) && project !== owner) faults.push(`${file}: ${specifier} only in ${owner}`);
    if (isPure(file) && effects.test(specifier)) faults.push(`${file}: pure code may not import ${specifier}`);
    if (specifier === 'typeorm' && !mayUseTypeorm(file))
      faults.push(`${file}: typeorm only in entities, stores, services, migrations`);
    return faults;
  });
}

export function projectOf(file: string): string | undefined {
  const parts = file.split('/');
  if (parts[0] === 'migrations') return 'migrations';
  return ['libs', 'apps'].includes(parts[0] ?? '') ? parts[1] : undefined;
}

/** Static and dynamic imports and re-exports of a source text, comments left out. */
export function importsOf(file: string, text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const pattern = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|\brequire\(\s*)['"]([^'"]+)['"]/g;
  return [...code.matchAll(pattern)].map((match) => ({ file, specifier: match[1] as string }));
}

/** Production sources (no specs, no builds), paths relative to `root`. */
export function sourceFiles(root: string): string[] {
  const files: string[] = [];
  const walk = (folder: string) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !['dist', 'node_modules'].includes(entry.name)) walk(path);
      else if (entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.(spec|d)\.ts$/.test(entry.name))
        files.push(relative(root, path));
    }
  };
  for (const top of ['apps', 'libs', 'migrations']) if (existsSync(join(root, top))) walk(join(root, top));
  return files.sort();
}

export const allImports = (root: string): Import[] =>
  sourceFiles(root).flatMap((file) => importsOf(file, readFileSync(join(root, file), 'utf8')));

/** Packages that are loaded with a file, by itself or by what it imports: no types, nothing that is imported later. */
export function packagesLoadedWith(root: string, entry: string): string[] {
  const found = new Set<string>();
  const seen = new Set<string>();
  const walk = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    const code = readFileSync(join(root, file), 'utf8').replace(/\bimport type\b[^;]*;|\bexport type\b[^;]*;/g, '');
    for (const { specifier } of importsOf(file, code.replace(/\bimport\(/g, 'later('))) {
      if (specifier.startsWith('.')) walk(relative('/', resolve('/', dirname(file), specifier)));
      else found.add(specifier);
    }
  };
  walk(entry);
  return [...found].sort();
}
