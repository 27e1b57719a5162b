import type { Route, RouteTarget, SplitSpec } from '@perch/contracts';
import { sharesOf } from '../route/share.plan.ts';
import { barePrefix, isBelow, newestAddressFirst, placeOf, type SplitPlace } from './split-target.plan.ts';

/** Routes of the endpoints there are, by name; null: it has none yet. */
export type MemberRoutes = ReadonlyMap<string, Route | null>;

/** One wish of a split: what it names, and what serves it now. */
export interface SplitWish {
  /** As the spec names it; of a prefix `<endpoint>/<version>`, or `` for a weight that no version takes. */
  target: string;
  place: SplitPlace | undefined;
  weight: number;
  /** Shares of the wish, adding to 1; empty: nothing serves it. */
  parts: { target: RouteTarget; share: number }[];
}

export interface CompiledSplit {
  route: Route;
  /** With the share of the split that each gets now. */
  wishes: (SplitWish & { share: number })[];
}

/** Who has the traffic of a progressive endpoint while a candidate is on trial: that is judged under the endpoint's own name alone. */
function settledArms({ arms, rollout }: Route): Route['arms'] {
  return rollout ? [{ deployment: rollout.stable, share: 1 }] : arms;
}

function whole(route: Route): SplitWish['parts'] {
  const arms = new Map(settledArms(route).map(({ deployment, share }) => [deployment, share]));
  return route.targets.flatMap((target) => {
    const share = arms.get(target.deployment) ?? 0;
    return share > 0 ? [{ target, share }] : [];
  });
}

/** The deployment of a version: of several the one that is not on trial, else the heaviest. */
function ofVersion({ targets, arms, rollout }: Route, version: number): SplitWish['parts'] {
  const worth = ({ deployment }: RouteTarget) =>
    (deployment === rollout?.candidate ? -1 : 0) + (arms.find((arm) => arm.deployment === deployment)?.share ?? 0);
  const [target] = targets.filter((one) => one.version === version).sort((a, b) => worth(b) - worth(a));
  return target ? [{ target, share: 1 }] : [];
}

function partsOf(place: SplitPlace | undefined, members: MemberRoutes): SplitWish['parts'] {
  const route = place && members.get(place.endpoint);
  if (!route) return [];
  return place.version === null ? whole(route) : ofVersion(route, place.version);
}

/** What serves below a prefix, newest first: not what only another split named, nor a candidate on trial. */
function placesBelow(prefix: string, members: MemberRoutes): SplitPlace[] {
  const found = [...members].flatMap(([endpoint, route]) => {
    if (!route || !isBelow(endpoint, prefix)) return [];
    const own = route.targets.filter(({ named, deployment }) => !named && deployment !== route.rollout?.candidate);
    return [...new Set(own.map(({ version }) => version))].map((version) => ({ endpoint, version }));
  });
  return found.sort((a, b) => newestAddressFirst(`${a.endpoint}/${a.version}`, `${b.endpoint}/${b.version}`));
}

function wishesOf(spec: SplitSpec, members: MemberRoutes): SplitWish[] {
  const exists = (endpoint: string) => members.has(endpoint);
  const wish = (target: string, place: SplitPlace | undefined, weight: number): SplitWish => ({
    target,
    place,
    weight,
    parts: partsOf(place, members),
  });
  if (spec.targets) return spec.targets.map((target, at) => wish(target, placeOf(target, exists), spec.weights![at]!));
  const places = placesBelow(barePrefix(spec.targetPrefix!), members);
  return spec.newestFirst!.map((weight, at) => {
    const place = places[at];
    return wish(place ? `${place.endpoint}/${place.version}` : '', place, weight);
  });
}

/** Limits that hold for whoever answers: the longest time any member takes, the smallest body, idempotent if all are. */
function limitsOf(routes: readonly Route[]): Pick<Route, 'timeoutMs' | 'maxBodyBytes' | 'idempotent' | 'stopped'> {
  const defaults = { timeoutMs: 60_000, maxBodyBytes: 67_108_864 };
  if (routes.length === 0) return { ...defaults, idempotent: true };
  return {
    timeoutMs: Math.max(...routes.map(({ timeoutMs }) => timeoutMs)),
    maxBodyBytes: Math.min(...routes.map(({ maxBodyBytes }) => maxBodyBytes)),
    idempotent: routes.every(({ idempotent }) => idempotent),
    ...(routes.every(({ stopped }) => stopped) ? { stopped: true } : {}),
  };
}

/**
 * The route of a split from the routes of the endpoints it names. Its targets are copies of theirs, so a split never
 * reaches what the endpoints themselves do not. A missing target's share goes to the heaviest that is left; weight zero
 * is reached by pinning alone; what is named twice has both shares.
 */
export function compileSplit(spec: SplitSpec, members: MemberRoutes): CompiledSplit {
  const wishes = wishesOf(spec, members);
  const shares = sharesOf(wishes.map(({ weight, parts }) => ({ weight, present: parts.length > 0 })));
  const targets = new Map<string, RouteTarget>();
  const arms = new Map<string, number>();
  for (const [at, { parts, place }] of wishes.entries())
    for (const { target, share } of parts) {
      const { named: _named, ...own } = target;
      targets.set(target.deployment, { ...own, endpoint: place!.endpoint });
      arms.set(target.deployment, (arms.get(target.deployment) ?? 0) + share * shares[at]!);
    }
  const routes = new Set(wishes.map(({ place }) => place && members.get(place.endpoint)));
  return {
    route: {
      arms: [...arms].map(([deployment, share]) => ({ deployment, share })).filter(({ share }) => share > 0),
      targets: [...targets.values()],
      access: spec.access.inference,
      ...limitsOf([...routes].filter((route) => route != null)),
      ...(spec.sticky ? { sticky: { header: spec.sticky.header, salt: spec.name } } : {}),
    },
    wishes: wishes.map((wish, at) => ({ ...wish, share: shares[at]! })),
  };
}
