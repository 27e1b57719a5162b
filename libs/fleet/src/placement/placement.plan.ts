import { faultsText, fitOn, labelFault, serverFault } from './placement.filter.ts';
import { PlacementBoard } from './placement-board.ts';
import {
  type CurrentPlacement,
  type ModelFacts,
  noFacts,
  type PlacementPlan,
  type Placing,
  type PlannedDeployment,
  type PlannedServer,
} from './placement-world.ts';
import { planMove } from './rebalance.plan.ts';
import { byScore, type Candidate, hostOf } from './score.plan.ts';

/** A deployment that serves somewhere and failed on so many other servers is not tried on more. */
const mostFailures = 2;

/**
 * Which servers are to hold which deployments, and by which of their variants. `servers`: those of the pool, without lost
 * ones. Moves as little as can be: what is placed stays, except on servers that are lost or drained and on surplus ones,
 * and even those are left only when enough others are ready (a lost server may still answer, and is better than none).
 * New replicas go to the best of the servers that pass every filter. A variant that failed for good on a server is
 * followed by the next one there. Once all are ready, one of them may move if that pays.
 */
export function planPlacement(
  deployments: readonly PlannedDeployment[],
  servers: readonly PlannedServer[],
  current: readonly CurrentPlacement[],
  facts: ModelFacts = noFacts,
): PlacementPlan {
  const plan: PlacementPlan = { add: [], leave: [], yields: [], short: new Map(), waits: [] };
  const board = new PlacementBoard(servers, current, facts);
  for (const deployment of deployments) planOne(deployment, board, plan);
  return plan;
}

/** The placements of one deployment, sorted by what is to become of them. */
interface Sorted {
  /** Stay, at most as many as wanted. */
  keep: CurrentPlacement[];
  /** Beyond what is wanted, or in place of one that is not ready yet. */
  surplus: CurrentPlacement[];
  /** On servers that are drained. */
  drained: CurrentPlacement[];
  /** On servers that are lost, of another pool, or without the labels that are wanted. */
  strayed: CurrentPlacement[];
  /** Failed there by every variant. */
  broken: CurrentPlacement[];
}

/** What is known of one deployment when its new servers have been picked. */
interface Scene {
  deployment: PlannedDeployment;
  sorted: Sorted;
  added: number;
  /** Servers that cannot take it, with the reason. */
  faults: readonly { server: string; fault: string }[];
}

function planOne(deployment: PlannedDeployment, board: PlacementBoard, plan: PlacementPlan): void {
  const own = board.placementsOf(deployment.id);
  const switched = own.flatMap((placement) => fallback(deployment, placement, board));
  for (const placing of switched) add(placing, board, plan);
  const switchedOn = new Set(switched.map(({ server }) => server));
  const sorted = sortOut(deployment, own, switchedOn, board);
  const { candidates, faults } = candidatesFor(deployment, own, board);
  const added = pickServers(deployment, sorted, candidates, board);
  for (const { server, variant } of added)
    add({ deployment: deployment.id, server: server.id, variant, instead: null }, board, plan);
  const scene: Scene = { deployment, sorted, added: added.length, faults };
  const reason = shortage(scene, board);
  if (reason) plan.short.set(deployment.id, reason);
  const left = planLeaving(scene, board, plan);
  for (const { server, yields } of sorted.keep)
    if (yields) plan.yields.push({ deployment: deployment.id, server, yields: false });
  if (added.length === 0 && switched.length === 0 && !left && isSettled(deployment, sorted, board))
    planRebalance(deployment, sorted, candidates, board, plan);
}

function add(placing: Placing, board: PlacementBoard, plan: PlacementPlan): void {
  plan.add.push(placing);
  board.place(placing.server, placing.variant);
}

/** The next variant on the server where one failed for good. */
function fallback(deployment: PlannedDeployment, placement: CurrentPlacement, board: PlacementBoard): Placing[] {
  const { server: id, tritonModel, failure } = placement;
  const server = board.server(id);
  if (failure === null || !server || serverFault(server)) return [];
  const after = deployment.variants.findIndex((variant) => variant.tritonModel === tritonModel) + 1;
  const fit = fitOn({ ...deployment, variants: deployment.variants.slice(after) }, server, board.facts);
  if (after === 0 || !('variant' in fit)) return [];
  return [{ deployment: deployment.id, server: id, variant: fit.variant, instead: { tritonModel, reason: failure } }];
}

function sortOut(
  deployment: PlannedDeployment,
  own: readonly CurrentPlacement[],
  switched: ReadonlySet<string>,
  board: PlacementBoard,
): Sorted {
  const sorted: Sorted = { keep: [], surplus: [], drained: [], strayed: [], broken: [] };
  const steady: CurrentPlacement[] = [];
  for (const placement of own) {
    const server = board.server(placement.server);
    if (!server || labelFault(deployment, server)) sorted.strayed.push(placement);
    else if (server.drain !== null) sorted.drained.push(placement);
    else if (placement.failure !== null && !switched.has(placement.server)) sorted.broken.push(placement);
    else steady.push(placement);
  }
  // What no server has proved is the version's fault: where it failed it stays, and is not carried further.
  const isProven = [...steady, ...sorted.drained, ...sorted.strayed].some(({ ready }) => ready);
  const slots = deployment.replicas - (isProven ? 0 : sorted.broken.length);
  const ranked = steady.sort(byWorth(board));
  return { ...sorted, keep: ranked.slice(0, Math.max(0, slots)), surplus: ranked.slice(Math.max(0, slots)) };
}

/** Those that are not being moved away come first, then ready ones, then those on live servers, then by id. */
const byWorth = (board: PlacementBoard) => (a: CurrentPlacement, b: CurrentPlacement) =>
  Number(a.yields ?? false) - Number(b.yields ?? false) ||
  Number(b.ready) - Number(a.ready) ||
  Number(board.isLive(b.server)) - Number(board.isLive(a.server)) ||
  (a.server < b.server ? -1 : 1);

function candidatesFor(deployment: PlannedDeployment, own: readonly CurrentPlacement[], board: PlacementBoard) {
  const taken = new Set(own.map(({ server }) => server));
  const candidates: Candidate[] = [];
  const faults: { server: string; fault: string }[] = [];
  for (const server of board.servers()) {
    if (taken.has(server.id)) continue;
    const fit = fitOn(deployment, server, board.facts);
    if ('variant' in fit) candidates.push({ server, variant: fit.variant });
    else faults.push({ server: server.name, fault: fit.fault });
  }
  return { candidates, faults };
}

function pickServers(
  deployment: PlannedDeployment,
  { keep, broken, drained, strayed }: Sorted,
  candidates: readonly Candidate[],
  board: PlacementBoard,
): Candidate[] {
  const isProven = [...keep, ...drained, ...strayed].some(({ ready }) => ready);
  if (isProven && broken.length >= mostFailures) return [];
  const wanted = deployment.replicas - keep.length - (isProven ? 0 : broken.length);
  const onHost = new Map<string, number>();
  const count = (server: PlannedServer) => onHost.set(hostOf(server), (onHost.get(hostOf(server)) ?? 0) + 1);
  for (const { server } of keep) count(board.server(server)!);
  const near = { returning: board.leftBy(deployment.id), onHost };
  const left = [...candidates];
  const picked: Candidate[] = [];
  while (picked.length < wanted && left.length > 0) {
    left.sort(byScore(deployment, board.facts, near));
    const best = left.shift()!;
    picked.push(best);
    count(best.server);
  }
  return picked;
}

function shortage({ deployment, sorted, added, faults }: Scene, board: PlacementBoard): string | undefined {
  const { keep, broken, drained, strayed } = sorted;
  const { replicas } = deployment;
  const placed = keep.length + added;
  if (placed >= replicas || (placed === 0 && broken.length > 0)) return undefined;
  const live = board.servers().filter(({ presence }) => presence === 'live').length;
  if (placed === 0 && live === 0 && faults.every(({ fault }) => fault === 'does not report'))
    return 'no live server in its pool';
  const name = (placement: CurrentPlacement) => board.server(placement.server)!.name;
  const told = [
    ...faults,
    ...drained.map((placement) => ({ server: name(placement), fault: 'is being drained' })),
    ...strayed.flatMap(({ server: id }) => {
      const server = board.server(id);
      return server ? [{ server: server.name, fault: labelFault(deployment, server)! }] : [];
    }),
    ...broken.map((placement) => ({ server: name(placement), fault: `failed there: ${placement.failure}` })),
  ];
  const wanted = `${replicas} ${replicas === 1 ? 'server' : 'servers'}`;
  if (told.length === 0) return `wants ${wanted}, its pool has ${live} live`;
  return `wants ${wanted}, ${placed === 0 ? 'none' : `only ${placed}`} can hold it (${faultsText(told)})`;
}

/** True: something leaves. Nothing does before enough of what stays is ready; a forced drain alone does not wait. */
function planLeaving(scene: Scene, board: PlacementBoard, plan: PlacementPlan): boolean {
  const { id, replicas, minReplicas } = scene.deployment;
  const { keep, surplus, drained, strayed, broken } = scene.sorted;
  const ready = keep.filter((placement) => placement.ready && board.isLive(placement.server)).length;
  const possible = Math.max(1, Math.min(replicas, keep.length + scene.added));
  const orderly = ready >= possible && ready >= Math.min(minReplicas, replicas);
  const forced = drained.filter(({ server }) => board.server(server)!.drain === 'forced');
  const going = [
    ...(orderly ? [...surplus, ...drained, ...(ready >= replicas ? broken : [])] : forced),
    ...(ready >= possible ? strayed : []),
  ];
  for (const { server } of going) plan.leave.push({ deployment: id, server });
  for (const placement of orderly ? [] : drained)
    if (!forced.includes(placement))
      plan.waits.push({ deployment: id, server: placement.server, waits: waitsFor(scene, board, plan) });
  return going.length > 0;
}

function waitsFor({ deployment: { id }, sorted, faults }: Scene, board: PlacementBoard, plan: PlacementPlan): string {
  const coming = [
    ...sorted.keep.filter(({ ready }) => !ready),
    ...plan.add.filter(({ deployment }) => deployment === id),
  ];
  const names = coming.map(({ server }) => board.server(server)!.name);
  if (names.length > 0) return `to be ready on ${[...new Set(names)].sort().join(', ')}`;
  const silent = sorted.keep.find(({ server }) => !board.isLive(server));
  if (silent) return `server ${board.server(silent.server)!.name} to report again`;
  return `another server that can hold it${faults.length > 0 ? ` (${faultsText(faults)})` : ''}`;
}

const isSettled = (
  { replicas }: PlannedDeployment,
  { keep, surplus, drained, strayed }: Sorted,
  board: PlacementBoard,
) =>
  keep.length === replicas &&
  surplus.length + drained.length + strayed.length === 0 &&
  keep.every(({ ready, server }) => ready && board.isLive(server));

function planRebalance(
  deployment: PlannedDeployment,
  { keep }: Sorted,
  candidates: readonly Candidate[],
  board: PlacementBoard,
  plan: PlacementPlan,
): void {
  const kept = keep.map(({ server }) => board.server(server)!);
  const move = planMove(kept, candidates, board.servers(), board.facts);
  if (!move) return;
  const { from, to } = move;
  add({ deployment: deployment.id, server: to.server.id, variant: to.variant, instead: null }, board, plan);
  plan.yields.push({ deployment: deployment.id, server: from, yields: true });
  board.yield(from);
}
