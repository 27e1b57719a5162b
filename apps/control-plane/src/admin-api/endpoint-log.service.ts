import { Injectable } from '@nestjs/common';
import { AuditService } from '@perch/access';
import type { EndpointLog } from '@perch/contracts';
import { changeLine, consoleLines, EndpointService } from '@perch/endpoints';
import { SightStore } from '@perch/fleet';
import { Transactions } from '@perch/platform/database';

export interface LogQuery {
  /** ISO; only what is younger. */
  since?: string | undefined;
  /** The `next` of the answer before. */
  after?: number | undefined;
  limit: number;
}

/** What happened to an endpoint: its rows of the audit log, and what consoles of its servers said. */
@Injectable()
export class EndpointLogService {
  constructor(
    private readonly transactions: Transactions,
    private readonly audit: AuditService,
    private readonly endpoints: EndpointService,
    private readonly sights: SightStore,
  ) {}

  /** Also of an endpoint that was removed. Throws `not_found` for a name never used. */
  async read(name: string, { since, after, limit }: LogQuery): Promise<EndpointLog> {
    await this.endpoints.generations(name);
    const rows = await this.audit.ofSubject({ subject: name, since, after: after ?? 0, limit });
    const sights = await this.sights.ofEndpoint(this.transactions.manager, name);
    return { items: [...rows.map(changeLine), ...consoleLines(sights)], next: rows.at(-1)?.id ?? after ?? 0 };
  }
}
