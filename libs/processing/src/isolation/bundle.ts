import type { AnyModule } from '../contract.ts';

/** Where this copy of the SDK is: bundles leave `@perch/processing` out, and get the one of who runs them. */
const sdkUrl = new URL(import.meta.url.endsWith('.ts') ? '../index.ts' : '../index.js', import.meta.url).href;
const sdkImport = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])@perch\/processing\2/g;

/** A module of a bundle's text. `label` names it in stacks. Rejects with what its top level threw, or says what is missing. */
export async function importBundle(bytes: Uint8Array, label: string): Promise<AnyModule> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  const linked = text.replace(sdkImport, (_, before: string) => `${before}${JSON.stringify(sdkUrl)}`);
  const named = `${linked}\n//# sourceURL=${label.replace(/[^\w./@-]/g, '_')}.mjs\n`;
  const loaded = await import(
    /* @vite-ignore */ `data:text/javascript;base64,${Buffer.from(named).toString('base64')}`
  );
  const module: unknown = loaded.default;
  if (typeof module !== 'object' || module === null)
    throw new TypeError('its default export is no module; wanted: export default defineProcessing({…})');
  return module as AnyModule;
}
