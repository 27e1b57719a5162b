import type { TableKey } from '@perch/contracts';

/** Whether a key may call an endpoint: no scopes = every one; else an exact name, or a prefix of whole segments (`text/*`). */
export function mayCall(key: TableKey, endpoint: string): boolean {
  if (key.endpoints.length === 0) return true;
  return key.endpoints.some((scope) =>
    scope.endsWith('/*') ? endpoint.startsWith(scope.slice(0, -1)) : scope === endpoint,
  );
}
