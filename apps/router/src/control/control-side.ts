import { join } from 'node:path';
import type { Logger } from '@perch/platform';
import { type Reported, ReportLoop } from '../report.loop.ts';
import type { RouterConfig } from '../router.config.ts';
import { type Deliver, RoutingTableSource } from '../routing-table.source.ts';
import { TableStore } from '../table/table.store.ts';
import { ControlClient } from './control.client.ts';
import { Enrolment } from './enrolment.ts';
import { FileStore } from './file.store.ts';
import { IdentityStore } from './identity.store.ts';

export const tableFile = (dataDir: string): string => join(dataDir, 'table.ndjson');

/** All that talks to the control plane; one per router, however many workers serve. */
export class ControlSide {
  readonly files: FileStore;
  readonly source: RoutingTableSource;
  private readonly client: ControlClient;
  private readonly reports: ReportLoop;

  constructor(config: RouterConfig, deliver: Deliver, reported: Reported, logger: Logger) {
    this.client = new ControlClient(config.controlUrl);
    this.files = new FileStore(join(config.dataDir, 'files'), this.client, logger);
    const enrolment = new Enrolment(this.client, new IdentityStore(config.dataDir), config, logger);
    const store = new TableStore(tableFile(config.dataDir));
    this.source = new RoutingTableSource({ client: this.client, enrolment, files: this.files, store, logger }, deliver);
    this.reports = new ReportLoop(this.client, enrolment, this.source, reported, logger);
  }

  /** The table in force changed: the acknowledgement is waited for. */
  reportSoon(): void {
    this.reports.soon();
  }

  async start(): Promise<void> {
    await this.source.start();
    this.reports.start();
  }

  /** After the last request was answered, so that the last report says so. */
  async stop(): Promise<void> {
    await this.source.stop();
    await this.reports.stop();
    await this.client.close();
  }
}
