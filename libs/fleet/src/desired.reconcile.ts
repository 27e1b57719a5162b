import { Injectable } from '@nestjs/common';
import { Transactions, type Tx } from '@perch/platform/database';
import { type HeldModel, heldBody, heldDigest } from './desired.plan.ts';
import { type Entry, entryOf, planEntries } from './documents/document.plan.ts';
import { serverDocument } from './documents/document.store.ts';
import { FleetStore } from './fleet.store.ts';
import { HeldStore } from './placement/held.store.ts';

const section = 'models';

/** Publishes what one server should hold, when that changed. Cost: one digest a model, one body a changed model. */
@Injectable()
export class DesiredReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
    private readonly store: HeldStore,
  ) {}

  async publishDesired(serverId: string): Promise<void> {
    const id = serverDocument(serverId);
    await this.transactions.run(async (tx) => {
      const revision = await this.stores.documents.lock(tx, id);
      const held = await this.store.held(tx, serverId);
      // Read after `held`: what is released in between is still desired here, and stays for the next look.
      const released = await this.store.released(tx, serverId);
      const wanted: Entry[] = held.map((one) => ({ ...entryOf(section, one.name, null), digest: heldDigest(one) }));
      const published = await this.stores.documents.entries(tx, id, section);
      const changes = planEntries(published, wanted, ({ key }) => released.has(key));
      if (changes.length > 0 || revision === 0)
        await this.stores.documents.publish(tx, id, await this.withBodies(tx, changes, held));
      const names = new Set(held.map(({ name }) => name));
      const gone = [...released].filter((name) => !names.has(name));
      if (gone.length === 0) return;
      await this.store.dropReleased(tx, serverId, gone);
      await this.stores.capacity.recount(tx, [serverId]);
    });
  }

  private async withBodies(tx: Tx, changes: readonly Entry[], held: readonly HeldModel[]): Promise<Entry[]> {
    const byName = new Map(held.map((one) => [one.name, one]));
    const names = new Set(byName.keys());
    const wanted = changes.flatMap(({ key, digest }) => (digest === null ? [] : [byName.get(key)!.tritonModel]));
    const bodies = new Map((await this.store.bodies(tx, wanted)).map(({ name, body }) => [name, body] as const));
    return changes.map((entry) => {
      const one = entry.digest === null ? undefined : byName.get(entry.key);
      const body = one && bodies.get(one.tritonModel);
      return body ? { ...entry, value: heldBody(body, one, names) } : entry;
    });
  }
}
