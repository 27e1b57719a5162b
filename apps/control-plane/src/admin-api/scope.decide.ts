import { type Role, roles } from '@perch/contracts';

/** Each role may do all that the ones before it may. */
export const atLeast = (has: Role, wants: Role): boolean => roles.indexOf(has) >= roles.indexOf(wants);

/** A scope is an exact name or a prefix ending in "/*"; no scopes = everything. */
export const inScopes = (scopes: readonly string[], name: string): boolean =>
  scopes.length === 0 ||
  scopes.some((scope) => (scope.endsWith('/*') ? name.startsWith(scope.slice(0, -1)) : scope === name));
