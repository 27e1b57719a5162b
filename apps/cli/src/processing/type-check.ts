import { sep } from 'node:path';
import type TypeScript from 'typescript';
import type { CodeFault } from './fault.ts';
import { pathIn } from './module-folder.source.ts';
import type { InstalledSdk } from './sdk.source.ts';
import { sdkName } from './sdk-name.ts';

/** Type errors of the module's own files, in order; those of the SDK and of packages are none of the user's. */
export async function typeFaults(entry: string, root: string, sdk: InstalledSdk): Promise<CodeFault[]> {
  const { default: ts } = await import('typescript');
  const program = ts.createProgram([entry], optionsOf(ts, sdk));
  const own = program
    .getSourceFiles()
    .filter(
      (file) =>
        !file.isDeclarationFile &&
        !program.isSourceFileFromExternalLibrary(file) &&
        !file.fileName.startsWith(`${sdk.libraries}${sep}`),
    );
  return own.flatMap((file) =>
    [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map((found) =>
      faultOf(ts, found, file, root),
    ),
  );
}

function optionsOf(ts: typeof TypeScript, sdk: InstalledSdk): TypeScript.CompilerOptions {
  return {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ['lib.es2023.d.ts'],
    strict: true,
    noEmit: true,
    allowJs: true,
    checkJs: false,
    allowImportingTsExtensions: true,
    resolveJsonModule: true,
    skipLibCheck: true,
    experimentalDecorators: true,
    paths: { [sdkName]: [sdk.typesFile] },
    ...(sdk.nodeTypes ? { types: ['node'], typeRoots: [sdk.nodeTypes] } : { types: [] }),
  };
}

function faultOf(
  ts: typeof TypeScript,
  { start = 0, messageText, code }: TypeScript.Diagnostic,
  file: TypeScript.SourceFile,
  root: string,
): CodeFault {
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  return {
    file: pathIn(root, file.fileName),
    line: line + 1,
    column: character + 1,
    message: `${ts.flattenDiagnosticMessageText(messageText, ' ')} (TS${code})`.replace(/\s+/g, ' '),
    code: file.text.split('\n')[line] ?? '',
  };
}
