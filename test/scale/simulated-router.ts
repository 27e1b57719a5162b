import type { RoutingTable } from '@perch/contracts';
import { silentLogger } from '@perch/platform';
import { ControlClient } from '../../apps/router/src/control/control.client.ts';
import { Enrolment } from '../../apps/router/src/control/enrolment.ts';
import type { FileStore } from '../../apps/router/src/control/file.store.ts';
import type { Identity, IdentityStore } from '../../apps/router/src/control/identity.store.ts';
import { CountBook } from '../../apps/router/src/count-book.ts';
import { EvidenceLedger } from '../../apps/router/src/evidence-ledger.ts';
import { ReportLoop } from '../../apps/router/src/report.loop.ts';
import { RoutingTableSource } from '../../apps/router/src/routing-table.source.ts';
import type { TableStore } from '../../apps/router/src/table/table.store.ts';

/** The router's own way with the control plane (documents, checks, acknowledgements), without requests and disk. */
export class SimulatedRouter {
  table: RoutingTable | undefined;
  /** Tables taken since the start. */
  swaps = 0;
  /** Told each table that is taken. */
  onTable: (table: RoutingTable) => void = () => undefined;
  private readonly client: ControlClient;
  private readonly source: RoutingTableSource;
  private readonly reports: ReportLoop;

  constructor(name: string, controlUrl: string, joinKey: string) {
    this.client = new ControlClient(controlUrl);
    const logger = silentLogger;
    const enrolment = new Enrolment(this.client, identityInMemory(), { name, joinKey }, logger);
    const files = { fetchAll: async () => undefined, keepOnly: async () => undefined } as unknown as FileStore;
    const store = { load: async () => undefined, save: async () => undefined } as unknown as TableStore;
    this.source = new RoutingTableSource(
      { client: this.client, enrolment, files, store, logger },
      async ({ table }) => {
        this.table = table;
        this.swaps += 1;
        this.onTable(table);
        this.reports.soon();
      },
    );
    const reported = {
      states: () => [this.state()],
      counts: new CountBook(),
      collect: () => undefined,
      evidence: new EvidenceLedger(),
      gather: async () => undefined,
      accepted: () => undefined,
    };
    this.reports = new ReportLoop(this.client, enrolment, this.source, reported, logger);
  }

  /** Versions that the table holds for an endpoint, newest first. */
  versionsOf(endpoint: string): number[] {
    return (this.table?.endpoints[endpoint]?.targets ?? []).map(({ version }) => version);
  }

  async start(): Promise<void> {
    await this.source.start();
    this.reports.start();
  }

  async stop(): Promise<void> {
    await this.source.stop();
    await this.reports.stop();
    await this.client.close();
  }

  private state() {
    const { table } = this;
    const head = { lineage: table?.lineage ?? null, revision: table?.revision ?? -1 };
    return { ...head, inFlight: {}, problems: {}, held: false };
  }
}

const identityInMemory = (): IdentityStore => {
  let kept: Identity | undefined;
  const store: Pick<IdentityStore, 'load' | 'save'> = {
    load: async () => kept,
    save: async (identity) => {
      kept = identity;
    },
  };
  return store as IdentityStore;
};
