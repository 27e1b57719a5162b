import { Injectable } from '@nestjs/common';
import type { Actor, Endpoint } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { EndpointService } from './endpoint.service.ts';
import { EndpointChangeService, unknownEndpoint } from './endpoint-change.service.ts';
import { EndpointsStore } from './endpoints.store.ts';

export interface SwitchOptions {
  reason?: string;
  /** The generation the caller saw; left out: the one in force now. */
  expectedGeneration?: number;
}

/** Stops and starts endpoints: a generation like any other change, so the same versions come back. */
@Injectable()
export class EndpointSwitchService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly change: EndpointChangeService,
    private readonly endpoints: EndpointService,
  ) {}

  /** What is so already stays as it is. Throws `not_found`, or `precondition_failed` when somebody changed it meanwhile. */
  async set(actor: Actor, name: string, stopped: boolean, options: SwitchOptions = {}): Promise<Endpoint> {
    const row = await this.stores.endpoints.get(this.transactions.manager, name);
    if (!row?.spec) throw unknownEndpoint(name);
    const expectedGeneration = options.expectedGeneration ?? row.generation;
    if ((row.spec.stopped ?? false) !== stopped)
      await this.change.put(
        actor,
        { ...row.spec, stopped },
        { verb: stopped ? 'stop' : 'start', expectedGeneration, reason: options.reason ?? '' },
      );
    return this.endpoints.get(name);
  }
}
