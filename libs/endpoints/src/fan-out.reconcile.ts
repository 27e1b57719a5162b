import { Injectable } from '@nestjs/common';
import { work } from '@perch/fleet';
import { Transactions, WorkStore } from '@perch/platform/database';
import { EndpointStore } from './endpoint.store.ts';

/** Turns what happened to a model or a pool into looks at the endpoints concerned. */
@Injectable()
export class FanOutReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly endpoints: EndpointStore,
    private readonly workStore: WorkStore,
  ) {}

  /** `key`: `<project>/<name>`. */
  async reconcileModel(key: string): Promise<void> {
    const at = key.indexOf('/');
    await this.wake(await this.endpoints.namesOfModel(this.transactions.manager, key.slice(0, at), key.slice(at + 1)));
  }

  async reconcilePool(pool: string): Promise<void> {
    await this.wake(await this.endpoints.namesOfPool(this.transactions.manager, pool));
  }

  async allEndpoints(): Promise<string[]> {
    return this.endpoints.allNames(this.transactions.manager);
  }

  private async wake(names: readonly string[]): Promise<void> {
    for (const name of names) await this.workStore.enqueue(null, work.endpoint, name);
  }
}
