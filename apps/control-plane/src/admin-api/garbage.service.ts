import { Inject, Injectable } from '@nestjs/common';
import { accessGarbage } from '@perch/access';
import { type Actor, type CollectGarbage, type Garbage, type GarbageReport, shownMessage } from '@perch/contracts';
import { endpointGarbage, VersionUsersService } from '@perch/endpoints';
import { fleetGarbage, Installation } from '@perch/fleet';
import {
  CHANGE_LOG,
  type ChangeLog,
  collectRows,
  type GarbageRule,
  Transactions,
  workGarbage,
} from '@perch/platform/database';
import { promotionGarbage } from '@perch/promotion';
import { GarbageService as RegistryGarbage } from '@perch/registry';

/** In this order: what goes earlier holds nothing of what comes later. */
const rowRules: readonly GarbageRule[] = [
  ...endpointGarbage,
  ...promotionGarbage,
  ...fleetGarbage,
  ...accessGarbage,
  ...workGarbage,
];

/** `perch gc`: lists or removes what nobody needs any more, kind by kind; one that fails does not hold up the others. */
@Injectable()
export class GarbageService {
  constructor(
    private readonly transactions: Transactions,
    private readonly registry: RegistryGarbage,
    private readonly users: VersionUsersService,
    private readonly installation: Installation,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  async collect(actor: Actor, { dryRun, olderThanMs }: CollectGarbage): Promise<GarbageReport> {
    const { manager } = this.transactions;
    const [clock] = await manager.query(`select now() - $1 * interval '1 millisecond' as before`, [olderThanMs]);
    const before: Date = clock.before;
    const found: Garbage[] = [];
    for (const rule of rowRules) found.push(await this.rowsOf(rule, before, dryRun));
    found.push(
      ...(await this.registry.collect({
        dryRun,
        before,
        neededHashes: (tx, hashes) => this.users.neededHashes(tx, hashes),
        trustRows: (await this.installation.current()).confirmed,
      })),
    );
    if (!dryRun) await this.note(actor, found);
    const sizeBytes = found.reduce((sum, one) => sum + one.sizeBytes, 0);
    return { dryRun, before: before.toISOString(), found, sizeBytes };
  }

  private async rowsOf(rule: GarbageRule, before: Date, dryRun: boolean): Promise<Garbage> {
    return this.transactions
      .run((tx) => collectRows(tx, rule, before, dryRun))
      .catch((error) => {
        const { kind, what } = rule;
        return { kind, what, count: 0, sizeBytes: 0, examples: [], failed: shownMessage(error) };
      });
  }

  private async note(actor: Actor, found: readonly Garbage[]): Promise<void> {
    const gone = found
      .filter(({ count }) => count > 0)
      .map(({ kind, count, sizeBytes }) => ({ kind, count, sizeBytes }));
    await this.transactions.run((tx) => this.changes.record(tx, actor, 'gc.run', 'installation', { gone }));
  }
}
