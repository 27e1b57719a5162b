import type { CompiledRoute, CompiledTable } from './table.ts';

export interface FoundRoute {
  route: CompiledRoute;
  /** Asked for by the path; the route may not hold it. */
  version?: number;
}

const versionText = /^[1-9][0-9]{0,9}$/;

/** A version number as text, or undefined when it is none. */
export const readVersion = (text: string): number | undefined => (versionText.test(text) ? Number(text) : undefined);

/**
 * What `/serve/<path>` means: the longest endpoint name first, so that an endpoint `E/7` is never taken for version 7
 * of `E`; then `<endpoint>/<version>`. `path` is already percent-decoded.
 */
export function resolveServe(table: Pick<CompiledTable, 'endpoints'>, path: string): FoundRoute | undefined {
  const whole = table.endpoints.get(path);
  if (whole) return { route: whole };
  const cut = path.lastIndexOf('/');
  if (cut < 1) return undefined;
  const version = readVersion(path.slice(cut + 1));
  const route = version === undefined ? undefined : table.endpoints.get(path.slice(0, cut));
  return route && { route, version };
}
