/**
 * Writes the types of the SDK as declarations, file by file, without a type checker: what compilers of other people read
 * is then a few files, and not the sources with all that they take in.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';

const imports = /((?:from|import)\s*\(?\s*['"])(\.{1,2}\/[^'"]+)\.ts(['"])/g;

async function declarationOf(file, text) {
  const { default: ts } = await import('typescript');
  const { outputText, diagnostics } = ts.transpileDeclaration(text, {
    fileName: file,
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      declaration: true,
      isolatedDeclarations: true,
      allowImportingTsExtensions: true,
    },
  });
  const [fault] = diagnostics ?? [];
  if (fault) {
    const line = text.slice(0, fault.start).split('\n').length;
    throw new Error(`${file}:${line}: ${ts.flattenDiagnosticMessageText(fault.messageText, ' ')}`);
  }
  return outputText;
}

/** `entry`: a file below `src`; it and what its types take in are written to `dist`, where they are older. */
export async function writeDeclarations(entry, src, dist) {
  const seen = new Set();
  const write = async (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const target = resolve(dist, relative(src, file).replace(/\.ts$/, '.d.ts'));
    let text;
    if (existsSync(target) && (await stat(target)).mtimeMs > (await stat(file)).mtimeMs) {
      text = await readFile(target, 'utf8');
    } else {
      text = (await declarationOf(file, await readFile(file, 'utf8'))).replace(imports, '$1$2.js$3');
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, text);
    }
    for (const [, from] of text.matchAll(/(?:from|import\()\s*['"](\.{1,2}\/[^'"]+)\.js['"]/g))
      await write(resolve(dirname(file), `${from}.ts`));
  };
  await write(entry);
}
