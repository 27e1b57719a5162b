import { readFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { AppError } from '@perch/contracts';
import type { BuildFailure, Message, Plugin } from 'esbuild';
import { type CodeFault, faultsError } from './fault.ts';
import { judgeImport } from './import-rule.plan.ts';
import { type ModuleFolder, pathIn } from './module-folder.source.ts';

export const mostBundleBytes = 32 * 1024 ** 2;
const builtins = new Set(builtinModules);

export interface Bundle {
  bytes: Buffer;
  /** Files that went into it, relative to the module's folder. */
  sources: string[];
}

/**
 * One file of ESM for Node 20 in which nothing but the SDK and harmless parts of Node are left to be imported. The same
 * sources give the same bytes wherever they lie. Throws `invalid` with file, line and code of each fault.
 */
export async function bundleModule({ root, entry, packages }: ModuleFolder): Promise<Bundle> {
  const { build } = await import('esbuild');
  const required = new Set<string>();
  const result = await build({
    entryPoints: [entry],
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.20',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
    mainFields: ['module', 'main'],
    tsconfigRaw: { compilerOptions: { target: 'es2023', useDefineForClassFields: true } },
    plugins: [importRule(packages, required)],
  }).catch((error: BuildFailure) => {
    if (!Array.isArray(error.errors)) throw error;
    throw faultsError(
      'the module cannot be bundled',
      error.errors.map((found) => faultOf(found)),
    );
  });
  const bytes = Buffer.concat([Buffer.from(requireText([...required].sort())), result.outputFiles[0]!.contents]);
  if (bytes.length > mostBundleBytes)
    throw new AppError(
      'too_large',
      `the bundle has ${bytes.length} bytes, at most ${mostBundleBytes}; put data into files/`,
    );
  const sources = Object.keys(result.metafile.inputs).sort();
  if (!Object.values(result.metafile.outputs).some(({ exports }) => exports.includes('default')))
    throw new AppError(
      'invalid',
      `${pathIn(root, entry)} has no default export; wanted: export default defineProcessing({…})`,
    );
  await refuseComputedImports(root, sources);
  return { bytes, sources };
}

/** Packages of the older kind ask for parts of Node by `require`, which ESM has not. */
function requireText(names: readonly string[]): string {
  if (names.length === 0) return '';
  const imports = names.map((name, at) => `import required${at} from ${JSON.stringify(name)};\n`);
  const members = names.map((name, at) => `${JSON.stringify(name)}: required${at}`);
  return `${imports.join('')}const require = (name) => ({ ${members.join(', ')} })[name];\n`;
}

/** `required`: told which parts of Node are asked for by `require`. */
const importRule = (listed: ReadonlySet<string>, required: Set<string>): Plugin => ({
  name: 'import-rule',
  setup(build) {
    build.onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
      if (kind === 'entry-point') return undefined;
      const by = /(^|\/)node_modules\//.test(importer) ? 'package' : 'module';
      const verdict = judgeImport({ specifier: path, by }, listed, builtins);
      if ('refused' in verdict) return { errors: [{ text: verdict.refused }] };
      if ('bundled' in verdict) return undefined;
      if (kind === 'require-call') required.add(verdict.left);
      return { path: verdict.left, external: true };
    });
    build.onLoad({ filter: /\.node$/ }, ({ path }) => ({
      errors: [{ text: `${path} is native code, which cannot be bundled` }],
    }));
  },
});

const faultOf = ({ text, location }: Message): CodeFault => ({
  file: location?.file ?? 'module',
  line: location?.line ?? 1,
  column: (location?.column ?? 0) + 1,
  message: text,
  code: location?.lineText ?? '',
});

/** `import(name)` would reach past the rule: only what was bundled may be imported. */
async function refuseComputedImports(root: string, sources: readonly string[]): Promise<void> {
  const faults: CodeFault[] = [];
  for (const path of sources.filter((one) => /\.[cm]?[jt]sx?$/.test(one))) {
    const text = await readFile(join(root, path), 'utf8');
    if (/\bimport\s*\(/.test(text)) faults.push(...(await computedImports(path, text)));
  }
  if (faults.length > 0) throw faultsError('the module cannot be bundled', faults);
}

async function computedImports(path: string, text: string): Promise<CodeFault[]> {
  const { default: ts } = await import('typescript');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  const faults: CodeFault[] = [];
  const visit = (node: import('typescript').Node): void => {
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [argument] = node.arguments;
      if (!argument || !ts.isStringLiteralLike(argument)) {
        const { line, character } = file.getLineAndCharacterOfPosition(node.getStart(file));
        const message = 'import() wants a name in quotes, so that it can be bundled';
        faults.push({ file: path, line: line + 1, column: character + 1, message, code: text.split('\n')[line] ?? '' });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return faults;
}
