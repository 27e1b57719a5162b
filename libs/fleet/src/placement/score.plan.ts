import { addedMemory, fillOf, hasRoomFor } from './memory.plan.ts';
import type { ModelFacts, PlannedDeployment, PlannedServer } from './placement-world.ts';
import type { ModelVariant } from './variant.ts';

/** A server that can take a deployment, with the variant it would run. */
export interface Candidate {
  server: PlannedServer;
  variant: ModelVariant;
}

/** What a choice among candidates looks at beside them. */
export interface Neighbourhood {
  /** Servers that the same deployment is just leaving: its model is still loaded there. */
  returning: ReadonlySet<string>;
  /** How many replicas of the deployment each host holds already. */
  onHost: ReadonlyMap<string, number>;
}

/** Machine a server runs on; one that nobody knows is taken for a machine of its own. */
export const hostOf = ({ facts, id }: PlannedServer): string => facts?.host ?? `server ${id}`;

/** Fullness is compared in tenths, so that a few megabytes do not decide. */
const fillStep = 0.1;

/**
 * Best first: where it is loaded anyway; the variant that is liked best; where most of what it needs lies already; where
 * there is room for what is likely to come beside it; the host with the fewest replicas of it; the emptier server by memory, then by models; then by id.
 */
export function byScore(deployment: PlannedDeployment, facts: ModelFacts, near: Neighbourhood) {
  const scoreOf = ({ server, variant }: Candidate): number[] => {
    const held = (name: string) => Number(facts.held.has(`${server.id} ${name}`));
    const needsHeld = variant.needs.reduce((count, { tritonModel }) => count + held(tritonModel), 0);
    return [
      near.returning.has(server.id) ? 0 : 1,
      1 - held(variant.tritonModel),
      deployment.variants.indexOf(variant),
      -needsHeld,
      deployment.spare && !hasRoomFor(variant, deployment.spare, server, facts) ? 1 : 0,
      near.onHost.get(hostOf(server)) ?? 0,
      Math.floor(fillAfter(server, variant, facts) / fillStep),
      server.models,
    ];
  };
  return (a: Candidate, b: Candidate): number => {
    const [left, right] = [scoreOf(a), scoreOf(b)];
    const place = left.findIndex((value, at) => value !== right[at]);
    return place === -1 ? (a.server.id < b.server.id ? -1 : 1) : left[place]! - right[place]!;
  };
}

/** How full a server would be with the variant on it; 0 where nobody knows its size. */
export function fillAfter(server: PlannedServer, variant: ModelVariant, facts: ModelFacts): number {
  const more = addedMemory(variant, server, facts);
  const placed = {
    ramBytes: server.placed.ramBytes + more.ramBytes,
    gpuBytes: server.placed.gpuBytes + more.gpuBytes,
  };
  return fillOf({ ...server, placed }) ?? 0;
}
