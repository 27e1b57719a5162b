import type { EndpointSpec, SplitSpec } from '@perch/contracts';
import { splitVersionLabel } from '../resolve/name.plan.ts';

/** A split that names an endpoint or versions of it, or has its name. */
export interface NamingSplit {
  name: string;
  spec: SplitSpec;
}

/**
 * Versions of an endpoint that splits name, newest first: they are loaded whatever its rule says. None of an endpoint with
 * one fixed version: that is all it has.
 */
export function namedVersions(
  { name, model }: Pick<EndpointSpec, 'name' | 'model'>,
  splits: readonly NamingSplit[],
): number[] {
  if (model.version !== undefined) return [];
  const labels = splits.flatMap(({ spec }) => spec.targets ?? []).map(splitVersionLabel);
  const versions = labels.flatMap((label) => (label?.parent === name ? [label.version] : []));
  return [...new Set(versions)].sort((a, b) => b - a);
}

/** The spec with the weights of the split that has the endpoint's own name. Access and limits stay the endpoint's. */
export function withOwnWeights(spec: EndpointSpec, split: SplitSpec | undefined): EndpointSpec {
  if (!split) return spec;
  const sticky = split.sticky ?? spec.traffic.sticky;
  const { targets, weights, newestFirst } = split;
  const shared = { mode: 'weighted' as const, ...(sticky ? { sticky } : {}) };
  if (newestFirst) return { ...spec, traffic: { ...shared, newestFirst } };
  const entries = targets!.map((target, at) => [String(splitVersionLabel(target)!.version), weights![at]!]);
  return { ...spec, traffic: { ...shared, weights: Object.fromEntries(entries) } };
}
