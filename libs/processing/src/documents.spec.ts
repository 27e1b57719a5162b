/** Every TypeScript example of the documents must be what the SDK takes. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const documents = ['docs/processing.md', 'docs/images.md', 'docs/pipelines.md', 'libs/processing/README.md'];

const examplesOf = (path: string): string[] =>
  [...readFileSync(join(root, path), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);

/** The faults of each example, each one a file of its own that stands in memory. */
function faultsOf(codes: readonly string[]): string[] {
  const options: ts.CompilerOptions = {
    ...ts.parseJsonConfigFileContent(
      ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config,
      ts.sys,
      dirname(join(root, 'tsconfig.json')),
    ).options,
    noEmit: true,
    incremental: false,
    noUnusedLocals: false,
  };
  const files = new Map(codes.map((code, at) => [join(root, `libs/processing/src/document-${at}.ts`), code]));
  const host = ts.createCompilerHost(options);
  const read = host.readFile.bind(host);
  const exists = host.fileExists.bind(host);
  const source = host.getSourceFile.bind(host);
  host.readFile = (path) => files.get(path) ?? read(path);
  host.fileExists = (path) => files.has(path) || exists(path);
  host.getSourceFile = (path, language, ...rest) =>
    files.has(path) ? ts.createSourceFile(path, files.get(path)!, language) : source(path, language, ...rest);
  const program = ts.createProgram([...files.keys()], options, host);
  return [...files.keys()].flatMap((path) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(path))
      .map(({ messageText }) => `${path.slice(root.length)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`),
  );
}

describe('examples of the documents', () => {
  it('are what the SDK takes', { timeout: 60_000 }, () => {
    const codes = documents.flatMap(examplesOf).filter((code) => code.includes('@perch/processing'));
    expect(codes.length).toBeGreaterThan(6);
    // the last one is wrong on purpose, so that the check itself can fail
    const faults = faultsOf([...codes, `${codes[0]}\nexport const wrong: number = 'text';`]);
    expect(faults).toEqual([expect.stringContaining(`document-${codes.length}.ts: Type 'string' is not assignable`)]);
  });
});
