import { Injectable } from '@nestjs/common';
import { Transactions } from '@perch/platform/database';
import { type Entry, entryOf, planEntries } from './document.plan.ts';
import { serverDocument } from './document.store.ts';
import { FleetStore } from './fleet.store.ts';

const section = 'models';

/** Publishes what one server should hold, when that changed. Cost: one digest a model, one body a changed model. */
@Injectable()
export class DesiredReconcile {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
  ) {}

  async publishDesired(serverId: string): Promise<void> {
    const id = serverDocument(serverId);
    await this.transactions.run(async (tx) => {
      const revision = await this.stores.documents.lock(tx, id);
      const desired = await this.stores.placements.desiredDigests(tx, serverId);
      // Read after `desired`: what is released in between is still desired here, and stays for the next look.
      const released = await this.stores.placements.released(tx, serverId);
      const wanted: Entry[] = desired.map(({ name, digest }) => ({ ...entryOf(section, name, null), digest }));
      const published = await this.stores.documents.entries(tx, id, section);
      const changes = planEntries(published, wanted, ({ key }) => released.has(key));
      if (changes.length > 0 || revision === 0)
        await this.stores.documents.publish(tx, id, await this.withBodies(tx, changes));
      const names = new Set(desired.map(({ name }) => name));
      await this.stores.placements.dropReleased(
        tx,
        serverId,
        [...released].filter((name) => !names.has(name)),
      );
    });
  }

  private async withBodies(tx: Parameters<FleetStore['documents']['lock']>[0], changes: Entry[]): Promise<Entry[]> {
    const names = changes.filter(({ digest }) => digest !== null).map(({ key }) => key);
    const bodies = new Map((await this.stores.placements.bodies(tx, names)).map(({ name, body }) => [name, body]));
    return changes.map((entry) => (entry.digest === null ? entry : { ...entry, value: bodies.get(entry.key) ?? null }));
  }
}
