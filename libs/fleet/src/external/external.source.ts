import { Injectable } from '@nestjs/common';
import type { DesiredModel, ObservedServer } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { FleetStore } from '../fleet.store.ts';
import { Installation } from '../installation.service.ts';
import { HeldStore } from '../placement/held.store.ts';
import { ServerService } from '../server.service.ts';
import { type ExternalRow, ExternalStore } from './external.store.ts';

/** All that the control plane knows of a Triton without an agent before it looks at it. */
export interface ExternalKnowledge {
  server: ExternalRow;
  known: ReadonlyMap<string, { state: string; reason: string | null; since: string }>;
  desired: ReadonlySet<string>;
  /** Nothing may be taken away before a person confirmed the database. */
  mayUnload: boolean;
  revision: number;
}

/** What the control plane has to know, and to tell, where it stands in for the agent of a Triton. */
@Injectable()
export class ExternalSource {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: ExternalStore,
    private readonly stores: FleetStore,
    private readonly held: HeldStore,
    private readonly servers: ServerService,
  ) {}

  async ids(): Promise<string[]> {
    return this.store.ids(this.transactions.manager);
  }

  /** Undefined: it was unregistered. */
  async knowledge(id: string): Promise<ExternalKnowledge | undefined> {
    return this.transactions.run(async (tx) => {
      const server = await this.store.get(tx, id);
      if (!server) return undefined;
      const { confirmed } = await Installation.read(tx);
      const held = server.mode === 'explicit' ? await this.held.held(tx, id) : [];
      return {
        server,
        known: await this.stores.servers.models(tx, id),
        desired: new Set(held.map(({ name }) => name).filter((name) => !name.includes('/'))),
        mayUnload: confirmed,
        revision: await this.store.revision(tx, id),
      };
    });
  }

  async body(name: string): Promise<DesiredModel | undefined> {
    return (await this.held.bodies(this.transactions.manager, [name]))[0]?.body;
  }

  /** It answered: as an agent's report would be. */
  async report(id: string, bootId: string, hash: string, observed: ObservedServer | undefined): Promise<void> {
    await this.store.setProblem(this.transactions.manager, id, null);
    await this.servers.observed(id, { bootId, hash, ...(observed ? { observed } : {}) });
  }

  /** It does not answer, or not as we need it. True: that is news. */
  async noteProblem(id: string, problem: string): Promise<boolean> {
    return this.store.setProblem(this.transactions.manager, id, problem);
  }
}
