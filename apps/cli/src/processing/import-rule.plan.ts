import { sdkName } from './sdk-name.ts';

/** Parts of Node that reach nothing outside of the module. */
export const allowedBuiltins: readonly string[] = [
  'assert', 'assert/strict', 'buffer', 'events', 'path', 'path/posix', 'perf_hooks', 'punycode', 'querystring', 'string_decoder',
  'timers', 'timers/promises', 'url', 'util', 'util/types',
]; // biome-ignore format: one list

export interface Imported {
  specifier: string;
  /** Where it stands: in the module's own code, or in a package that it bundles. */
  by: 'module' | 'package';
}

/** What becomes of an import: left to who runs the module, bundled, or refused with the reason. */
export type ImportVerdict = { left: string } | { bundled: true } | { refused: string };

/** `builtins`: every part of Node, without `node:`; `listed`: packages of the module's package.json. */
export function judgeImport(
  { specifier, by }: Imported,
  listed: ReadonlySet<string>,
  builtins: ReadonlySet<string>,
): ImportVerdict {
  if (specifier === sdkName) return { left: specifier };
  if (specifier.startsWith(`${sdkName}/`)) return { refused: `${specifier} is for tests; a module imports ${sdkName}` };
  const bare = specifier.replace(/^node:/, '');
  if (specifier.startsWith('node:') || builtins.has(specifier))
    return allowedBuiltins.includes(bare)
      ? { left: `node:${bare}` }
      : { refused: `${specifier} is not for modules: they reach files by files.read, other endpoints by ctx.serve` };
  if (/^\.{0,2}\//.test(specifier) || specifier === '.' || specifier === '..') return { bundled: true };
  if (/^[a-z]+:/i.test(specifier))
    return { refused: `${specifier}: nothing is fetched when a module is bundled; put the file beside it` };
  if (specifier.startsWith('#') || by === 'package') return { bundled: true };
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  if (nativePackages.has(name))
    return { refused: `${name} is native code, which cannot be bundled; ${nativePackages.get(name)}` };
  if (listed.has(name)) return { bundled: true };
  return { refused: `package ${name} is not listed; add it to "dependencies" of the package.json beside the module` };
}

const nativePackages = new Map([
  ['sharp', `use decodeImage and imageTensor of ${sdkName}`],
  ['onnxruntime-node', 'ask the model by ctx.infer'],
  ['canvas', `use decodeImage of ${sdkName}`],
]);
