import type { EndpointSpec } from '@perch/contracts';
import { selectVersions, type VersionFacts } from './resolve/version.plan.ts';
import { type NamingSplit, namedVersions } from './split/split-member.plan.ts';

/** An endpoint that follows a model. */
export interface FollowingEndpoint {
  name: string;
  model: EndpointSpec['model'];
}
/** A deployment that is not retired and holds a version, for itself or beside a model whose code calls it. */
export interface HoldingDeployment {
  endpoint: string;
  version: number;
  called: boolean;
}

const inOrder = (words: Iterable<string>): string[] => [...new Set(words)].sort();

/**
 * Who holds versions of a model back, in words. `versions`: all there are of it; `numbers`: those that are to go, null
 * for the whole model; `splits`: those that name versions of these endpoints. An endpoint that is stopped counts too: it is started again with what its spec says.
 */
export function decideUsers(
  endpoints: readonly FollowingEndpoint[],
  deployments: readonly HoldingDeployment[],
  versions: readonly VersionFacts[],
  numbers: readonly number[] | null,
  splits: readonly NamingSplit[] = [],
): string[] {
  const goes = (number: number) => numbers === null || numbers.includes(number);
  const held = deployments
    .filter(({ version }) => goes(version))
    .map(({ endpoint, version, called }) =>
      called ? `endpoint ${endpoint} (its code calls version ${version})` : `endpoint ${endpoint} (version ${version})`,
    );
  const named = endpoints.flatMap(({ name, model }) => {
    if (model.version !== undefined) return goes(model.version) ? [`endpoint ${name} (version ${model.version})`] : [];
    const wanted = selectVersions(model, versions).filter(goes);
    if (wanted.length > 0) return wanted.map((version) => `endpoint ${name} (version ${version})`);
    return numbers === null ? [`endpoint ${name} (follows it)`] : [];
  });
  const shared = endpoints.flatMap((endpoint) =>
    splits.flatMap((split) =>
      namedVersions(endpoint, [split])
        .filter(goes)
        .map((version) => `split ${split.name} (${endpoint.name}/${version})`),
    ),
  );
  return inOrder([...named, ...held, ...shared]);
}
