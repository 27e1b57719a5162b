import { addedMemory } from './memory.plan.ts';
import type { CurrentPlacement, ModelFacts, PlannedServer } from './placement-world.ts';
import type { ModelVariant } from './variant.ts';

/** Servers and placements while a plan is made: what one deployment takes, the next one finds taken. */
export class PlacementBoard {
  private readonly byId: Map<string, PlannedServer>;
  private readonly held: Set<string>;
  readonly facts: ModelFacts;

  constructor(
    servers: readonly PlannedServer[],
    private readonly current: readonly CurrentPlacement[],
    facts: ModelFacts,
  ) {
    this.byId = new Map(servers.map((server) => [server.id, server]));
    this.held = new Set([...facts.held, ...current.map(({ server, tritonModel }) => `${server} ${tritonModel}`)]);
    this.facts = { ...facts, held: this.held };
  }

  servers(): PlannedServer[] {
    return [...this.byId.values()];
  }

  /** Undefined: lost, or of another pool. */
  server(id: string): PlannedServer | undefined {
    return this.byId.get(id);
  }

  isLive(id: string): boolean {
    return this.byId.get(id)?.presence === 'live';
  }

  /** Those that count. */
  placementsOf(deployment: string): CurrentPlacement[] {
    return this.current.filter((placement) => placement.deployment === deployment && !placement.leaving);
  }

  leftBy(deployment: string): Set<string> {
    const leaving = this.current.filter((placement) => placement.deployment === deployment && placement.leaving);
    return new Set(leaving.map(({ server }) => server));
  }

  place(id: string, variant: ModelVariant): void {
    const server = this.byId.get(id)!;
    const more = addedMemory(variant, server, this.facts);
    const placed = {
      ramBytes: server.placed.ramBytes + more.ramBytes,
      gpuBytes: server.placed.gpuBytes + more.gpuBytes,
    };
    this.byId.set(id, { ...server, models: server.models + 1, placed });
    for (const name of [variant.tritonModel, ...variant.needs.map(({ tritonModel }) => tritonModel)])
      this.held.add(`${id} ${name}`);
  }

  yield(id: string): void {
    const server = this.byId.get(id)!;
    this.byId.set(id, { ...server, models: server.models - 1, moving: server.moving + 1 });
  }
}
