import type { EndpointSpec, SplitSpec } from '@perch/contracts';
import { type NamedEndpoint, nameConflict, splitVersionLabel } from '../resolve/name.plan.ts';
import type { NamingSplit } from './split-member.plan.ts';
import { barePrefix, isBelow, namesIn } from './split-target.plan.ts';

/** `S/7` beside a split `S` hides nothing when it is one of the things that `S` shares out. */
const isMember = (endpoint: string, { targets = [], targetPrefix }: SplitSpec): boolean =>
  targets.includes(endpoint) || (targetPrefix !== undefined && isBelow(endpoint, barePrefix(targetPrefix)));

/**
 * Why a split may not have this name: `/serve/S/7` finds the longest name first, so that `S/7` would hide version 7 of
 * whatever is called `S`. The name of an endpoint is no conflict: such a split sets that endpoint's weights.
 */
export function splitNameConflict(
  spec: SplitSpec,
  endpoints: readonly NamedEndpoint[],
  splits: readonly NamingSplit[],
): string | undefined {
  if (endpoints.some(({ name }) => name === spec.name)) return undefined;
  const others = splits.filter(({ name }) => name !== spec.name).map(asNamed);
  const beside = endpoints.filter(({ name }) => !isMember(name, spec)).map((one) => ({ ...one, kind: 'endpoint' }));
  return nameConflict(asNamed({ name: spec.name, spec }), [...beside, ...others]);
}

/** The same seen from an endpoint that is added or changed. `before`: null, it is new. */
export function splitsInTheWay(
  { name, model, traffic }: EndpointSpec,
  before: EndpointSpec | null,
  splits: readonly NamingSplit[],
): string | undefined {
  const same = splits.find((split) => split.name === name);
  if (same && !before) return `split ${name} has this name; remove it first, or choose another name`;
  if (same && traffic.mode === 'progressive')
    return `split ${name} sets the weights of endpoint ${name}, and mode progressive leaves them to rollouts; remove the split first`;
  const others = splits.filter((split) => split.name !== name && !isMember(name, split.spec));
  return nameConflict({ name, onlyVersion: model.version ?? null }, others.map(asNamed));
}

/** A split may come to serve any version. */
const asNamed = ({ name }: NamingSplit): NamedEndpoint => ({ name, onlyVersion: null, kind: 'split' });

/** Who names an endpoint, in words: `split text/ab (text/a/7)`. */
export function usersText(endpoint: string, splits: readonly NamingSplit[]): string {
  const words = splits.map(({ name, spec }) => {
    const targets = (spec.targets ?? []).filter(
      (target) => namesIn(target).includes(endpoint) || splitVersionLabel(target)?.parent === endpoint,
    );
    return `split ${name}${targets.length > 0 ? ` (${targets.join(', ')})` : ''}`;
  });
  return words.join(', ');
}
