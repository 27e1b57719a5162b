import { Injectable } from '@nestjs/common';
import type { EndpointStatus } from '@perch/contracts';
import { Installation, RouterService, routingTableDocument, ServerService } from '@perch/fleet';
import { Transactions } from '@perch/platform/database';
import { answered } from './answer.source.ts';
import type { EndpointFacts, PublishedDocument } from './doctor-fleet.decide.ts';

/** What the doctor asks of the fleet and of endpoints. */
@Injectable()
export class DoctorFleetSource {
  constructor(
    private readonly transactions: Transactions,
    private readonly servers: ServerService,
    private readonly routers: RouterService,
    private readonly installation: Installation,
  ) {}

  async ask(now: number) {
    const [servers, routers, endpoints, documents, installation] = await Promise.all([
      answered('the list of servers', this.servers.list()),
      answered('the list of routers', this.routers.list()),
      answered('the list of endpoints', this.endpoints()),
      answered('the published documents', this.documents()),
      answered('the installation', this.installation.current()),
    ]);
    const published = 'value' in documents ? documents.value : new Map<string, PublishedDocument>();
    return {
      now,
      servers,
      routers,
      endpoints,
      table: published.get(routingTableDocument) ?? null,
      documents: new Map([...published].map(([id, one]) => [id.replace(/^server\//, ''), one])),
      lineage: 'value' in installation ? installation.value.lineage : null,
      confirmed: 'value' in installation ? { value: installation.value.confirmed } : installation,
    };
  }

  private async endpoints(): Promise<EndpointFacts[]> {
    const rows: { name: string; pool: string; stopped: boolean; status: EndpointStatus }[] =
      await this.transactions.manager.query(
        `select name, pool, coalesce((spec ->> 'stopped')::boolean, false) as stopped, status
         from endpoints where spec is not null order by name`,
      );
    return rows;
  }

  private async documents(): Promise<Map<string, PublishedDocument>> {
    const rows: { id: string; revision: string; age: string }[] = await this.transactions.manager.query(
      `select id, revision, extract(epoch from now() - published_at) * 1000 as age from documents where revision > 0`,
    );
    return new Map(rows.map(({ id, revision, age }) => [id, { revision: Number(revision), ageMs: Number(age) }]));
  }
}
