import { type EndpointSpec, parseWith, type SplitSpec, splitSpec } from '@perch/contracts';
import { isComplete, type VersionFacts } from '../resolve/version.plan.ts';
import { barePrefix, isBelow, namesIn, placeOf, type SplitPlace } from './split-target.plan.ts';

/** A spec as the user wrote it, with every default filled in. Throws `invalid` naming the field at fault. */
export function parseSplit(input: unknown): SplitSpec {
  const spec = parseWith(splitSpec, input, 'split spec');
  return spec.targetPrefix === undefined ? spec : { ...spec, targetPrefix: barePrefix(spec.targetPrefix) };
}

/** What a split may refer to. */
export interface SplitWorld {
  /** Specs of the endpoints that its targets may mean, and of the one of its own name. */
  endpoints: ReadonlyMap<string, EndpointSpec>;
  /** Endpoints that are made together with it: not there yet, and not looked into. */
  coming: ReadonlySet<string>;
  /** Names that are splits. */
  splits: ReadonlySet<string>;
  /** All versions there are for endpoints that a target names a version of. */
  versions: ReadonlyMap<string, readonly VersionFacts[]>;
}

export interface SplitFault {
  path: string;
  message: string;
}

const exists =
  ({ endpoints, coming }: SplitWorld) =>
  (name: string) =>
    endpoints.has(name) || coming.has(name);

/** Endpoints that a split's fixed targets are of. Empty for a prefix. */
export const placesOf = (spec: SplitSpec, world: SplitWorld): SplitPlace[] =>
  (spec.targets ?? []).flatMap((target) => placeOf(target, exists(world)) ?? []);

function versionFault({ endpoint, version }: SplitPlace, world: SplitWorld): string | undefined {
  const spec = world.endpoints.get(endpoint);
  if (version === null || !spec) return undefined;
  const { version: only, project, name } = spec.model;
  if (only !== undefined)
    return only === version ? undefined : `endpoint ${endpoint} serves version ${only} alone, not ${version}`;
  const all = world.versions.get(endpoint) ?? [];
  const found = all.find(({ number }) => number === version);
  if (found) return isComplete(found) ? undefined : `version ${version} of ${project}/${name} is ${found.state}`;
  const numbers = all.map(({ number }) => number).sort((a, b) => b - a);
  const has = numbers.length === 0 ? 'it has none' : `it has ${numbers.slice(0, 10).join(', ')}`;
  return `endpoint ${endpoint} has no version ${version}; ${has}`;
}

function targetFault(target: string, spec: SplitSpec, world: SplitWorld): string | undefined {
  if (target === spec.name)
    return `${target} is the split itself; name versions of it, such as ${target}/1, or choose another name for the split`;
  const place = placeOf(target, exists(world));
  const split = namesIn(target).find((name) => world.splits.has(name) && !exists(world)(name));
  if (!place && split) return `${split} is a split, and a split shares out endpoints and their versions alone`;
  if (!place) return `there is no endpoint ${namesIn(target).join(' and none ')}; add it first`;
  if (world.endpoints.has(spec.name) && place.endpoint !== spec.name)
    return `${spec.name} is an endpoint, so this split sets its weights and names versions of it alone (${spec.name}/1), not ${target}`;
  return versionFault(place, world);
}

/** What a split may not say about an endpoint of its own name. */
function ownFaults(spec: SplitSpec, own: EndpointSpec): SplitFault[] {
  const faults: SplitFault[] = [];
  if (own.traffic.mode === 'progressive')
    faults.push({
      path: 'name',
      message: `endpoint ${spec.name} is in mode progressive: its rollouts set its weights; choose another name, or change its traffic.mode`,
    });
  if (spec.targetPrefix !== undefined && spec.targetPrefix !== spec.name)
    faults.push({
      path: 'targetPrefix',
      message: `${spec.name} is an endpoint, so this split sets its weights: wants ${spec.name}, not ${spec.targetPrefix}`,
    });
  if (spec.access.inference === 'public' && own.access.inference !== 'public')
    faults.push({
      path: 'access.inference',
      message: `${spec.name} is an endpoint that wants a key: change that with "perch endpoint update ${spec.name} --access public"`,
    });
  return faults;
}

/** All that speaks against a split although each field by itself is fine. */
export function splitFaults(spec: SplitSpec, world: SplitWorld): SplitFault[] {
  const own = world.endpoints.get(spec.name);
  const faults = (spec.targets ?? []).flatMap((target, at) => {
    const message = targetFault(target, spec, world);
    return message ? [{ path: `targets.${at}`, message }] : [];
  });
  return [...faults, ...(own ? ownFaults(spec, own) : [])];
}

/** A scope is an exact name or a prefix ending in "/*"; no scopes = everything. */
export const covers = (scopes: readonly string[], name: string) =>
  scopes.length === 0 ||
  scopes.some((scope) => (scope.endsWith('/*') ? name.startsWith(scope.slice(0, -1)) : scope === name));

/** What of a split lies outside of the scopes of a key, or undefined: nobody opens by a split what is closed to him. */
export function outOfScope(scopes: readonly string[], spec: SplitSpec, world: SplitWorld): string | undefined {
  const names = [spec.name, ...placesOf(spec, world).map(({ endpoint }) => endpoint)];
  const outside = names.find((name) => !covers(scopes, name));
  if (outside !== undefined || spec.targetPrefix === undefined) return outside;
  // what is to come below the prefix must lie in the scopes too
  const { targetPrefix } = spec;
  const below = scopes.some((scope) => scope.endsWith('/*') && isBelow(targetPrefix, scope.slice(0, -2)));
  return scopes.length === 0 || (below && covers(scopes, targetPrefix)) ? undefined : `${targetPrefix}/*`;
}
