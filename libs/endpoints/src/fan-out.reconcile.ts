import { Inject, Injectable } from '@nestjs/common';
import { ExternalStore, work } from '@perch/fleet';
import { Transactions, WorkStore } from '@perch/platform/database';
import { EndpointStore } from './endpoint.store.ts';
import { VERSIONS, type VersionSource } from './resolve/version.source.ts';

/** Turns what happened to a model or a pool into looks at the endpoints concerned. */
@Injectable()
export class FanOutReconcile {
  private lastLooked = '';

  constructor(
    private readonly transactions: Transactions,
    private readonly endpoints: EndpointStore,
    private readonly workStore: WorkStore,
    @Inject(VERSIONS) private readonly versions: VersionSource,
    private readonly external: ExternalStore,
  ) {}

  /** `key`: `<project>/<name>`. Endpoints of models that use this one, at whatever depth, are concerned too. */
  async reconcileModel(key: string): Promise<void> {
    const models = new Set([key]);
    for (const model of models) {
      const at = model.indexOf('/');
      const { manager } = this.transactions;
      await this.wake(await this.endpoints.namesOfModel(manager, model.slice(0, at), model.slice(at + 1)));
      // A set that grows while it is walked: each model once, also where uses go in a circle.
      for (const user of await this.versions.modelsUsing(model)) models.add(user);
    }
  }

  async reconcilePool(pool: string): Promise<void> {
    await this.wake(await this.endpoints.namesOfPool(this.transactions.manager, pool));
  }

  /** What a server without an agent holds has changed; one that is gone concerns all that are served from outside. */
  async reconcileSource(serverId: string): Promise<void> {
    const { manager } = this.transactions;
    const server = await this.external.get(manager, serverId);
    await this.wake(await this.endpoints.namesOfSource(manager, server ? [server.name, server.pool] : null));
  }

  /**
   * The next part of all endpoints, in the order of their names, round and round: so many looks an hour, however many
   * endpoints there are. What asks for a look is written with the change that causes it; this only heals what was not.
   */
  async someEndpoints(most: number): Promise<string[]> {
    const names = await this.endpoints.someNames(this.transactions.manager, this.lastLooked, most);
    this.lastLooked = names.length < most ? '' : names.at(-1)!;
    return names;
  }

  private async wake(names: readonly string[]): Promise<void> {
    await this.workStore.enqueueAll(null, work.endpoint, names);
  }
}
