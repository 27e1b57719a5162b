import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { sdkName } from './sdk-name.ts';

export interface InstalledSdk {
  /** The file that declares its types. */
  typesFile: string;
  /** Its code as it runs. */
  codeFile: string;
  /** Folder that holds it and its sister packages: nothing in it is the user's. */
  libraries: string;
  /** `@types` of Node; undefined in installations without them. */
  nodeTypes: string | undefined;
  /** The installation's own folder of packages. */
  packages: string;
}

/** Where the SDK of this program lies: the user's folder needs no packages of its own. */
export function installedSdk(): InstalledSdk {
  const require = createRequire(import.meta.url);
  const manifest = require.resolve(`${sdkName}/package.json`);
  const root = dirname(manifest);
  const { types, default: code } = JSON.parse(readFileSync(manifest, 'utf8')).exports['.'];
  const typescript = dirname(require.resolve('typescript/package.json'));
  const packages = resolve(typescript, '..');
  const nodeTypes = join(packages, '@types', 'node');
  return {
    typesFile: join(root, types),
    codeFile: join(root, code),
    libraries: dirname(root),
    nodeTypes: existsSync(nodeTypes) ? dirname(nodeTypes) : undefined,
    packages,
  };
}
