import { Injectable } from '@nestjs/common';
import type { Endpoint } from '@perch/contracts';
import { SightStore } from '@perch/fleet';
import { Transactions } from '@perch/platform/database';
import { EndpointService } from './endpoint.service.ts';
import { detailEndpoint } from './endpoint-view.ts';

/** One endpoint with desired against observed on every server; lists leave that out. */
@Injectable()
export class EndpointDetailService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endpoints: EndpointService,
    private readonly sights: SightStore,
  ) {}

  /** Throws `not_found`. */
  async get(name: string): Promise<Endpoint> {
    const endpoint = await this.endpoints.get(name);
    return detailEndpoint(endpoint, await this.sights.ofEndpoint(this.transactions.manager, name));
  }
}
