import { fillOf } from './memory.plan.ts';
import type { ModelFacts, PlannedServer } from './placement-world.ts';
import { type Candidate, fillAfter, hostOf } from './score.plan.ts';

/** A move pays from this difference in fullness on, and only when the target stays clearly emptier than the source was. */
const fillGain = 0.3;
const fillMargin = 0.1;
/** Without known sizes: from so many models more, and half as many again, on. */
const modelGain = 6;
const modelShare = 0.5;
/** Share of the pool's servers that may be moving something at once; at least one. */
const movingShare = 0.25;

export interface Move {
  from: string;
  to: Candidate;
}

/**
 * The one move of a deployment that pays, or undefined. Two replicas on one host move apart whenever they can; otherwise
 * the thresholds leave both servers on the same side of each other as before, so no move is ever worth undoing.
 */
export function planMove(
  kept: readonly PlannedServer[],
  candidates: readonly Candidate[],
  pool: readonly PlannedServer[],
  facts: ModelFacts,
): Move | undefined {
  const moving = pool.reduce((sum, server) => sum + server.moving, 0);
  if (moving >= Math.max(1, Math.floor(pool.length * movingShare))) return undefined;
  const moves = kept.flatMap((from) => candidates.map((to) => ({ from, to, gain: gainOf(from, to, kept, facts) })));
  const [best] = moves
    .filter(({ gain }) => gain > 0)
    .sort((a, b) => b.gain - a.gain || (`${a.from.id} ${a.to.server.id}` < `${b.from.id} ${b.to.server.id}` ? -1 : 1));
  return best && { from: best.from.id, to: best.to };
}

/** Above 0: it pays. Moving apart is worth more than any load. */
function gainOf(from: PlannedServer, to: Candidate, kept: readonly PlannedServer[], facts: ModelFacts): number {
  const others = kept.filter((server) => server !== from).map(hostOf);
  const together = others.includes(hostOf(from));
  const joins = others.includes(hostOf(to.server));
  if (together && !joins) return 1_000_000;
  if (joins && !together) return 0;
  return loadGain(from, to, facts);
}

function loadGain(from: PlannedServer, { server, variant }: Candidate, facts: ModelFacts): number {
  const [full, empty] = [fillOf(from), fillOf(server)];
  if (full !== null && empty !== null) {
    const after = fillAfter(server, variant, facts);
    return full - empty >= fillGain && after <= full - fillMargin ? full - empty : 0;
  }
  const difference = from.models - server.models;
  return difference >= Math.max(modelGain, Math.ceil(from.models * modelShare)) ? difference : 0;
}
