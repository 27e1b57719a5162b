import { Injectable } from '@nestjs/common';
import { type Actor, AppError, type DeletedModel } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { ModelStore } from './model.store.ts';
import type { VersionEntity } from './version.entity.ts';
import { VersionStore } from './version.store.ts';
import { VersionChangeService } from './version-change.service.ts';

/** Who of serving holds back what is to go, in words such as `endpoint text/minilm (version 3)`; all versions are given. */
export type UsersOf = (tx: Tx, project: string, name: string, versions: readonly VersionEntity[]) => Promise<string[]>;

/**
 * Takes models and versions from sight. Soft: rows and bytes stay until garbage is collected, and a number that was
 * given is never given again.
 */
@Injectable()
export class DeletionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly models: ModelStore,
    private readonly versions: VersionStore,
    private readonly changes: VersionChangeService,
  ) {}

  /** `number` null: the whole model. Throws `not_found`, and `conflict` naming who uses it. */
  async delete(
    actor: Actor,
    project: string,
    name: string,
    number: number | null,
    usersOf: UsersOf,
  ): Promise<DeletedModel> {
    return this.transactions.run(async (tx) => {
      const found = await this.hold(tx, project, name, number);
      const all = number === null ? found : await this.versions.list(tx, project, name);
      refuseUsed(project, name, number, [
        ...(await usersOf(tx, project, name, all)),
        ...(await this.callers(tx, `${project}/${name}`, number)),
      ]);
      for (const version of found) {
        if (version.state === 'uploading') await this.versions.delete(tx, version.id);
        await this.changes.record(tx, actor, 'version.delete', version, { manifestDigest: version.manifestDigest });
      }
      const whole = found.filter(({ state }) => state !== 'uploading');
      await this.versions.markDeleted(
        tx,
        whole.map(({ id }) => id),
      );
      if (number === null) await this.models.markDeleted(tx, found[0]?.modelId ?? (await this.idOf(tx, project, name)));
      const sizeBytes = whole.reduce((sum, version) => sum + version.sizeBytes, 0);
      return { project, name, versions: found.map((version) => version.number).sort((a, b) => a - b), sizeBytes };
    });
  }

  /** The versions concerned, locked; of a whole model its row too, so that no upload begins meanwhile. */
  private async hold(tx: Tx, project: string, name: string, number: number | null): Promise<VersionEntity[]> {
    if (number !== null) return [await this.versions.lock(tx, project, name, number)];
    if (!(await this.models.find(tx, project, name)))
      throw new AppError('not_found', `model ${project}/${name} does not exist`);
    await this.models.lock(tx, project, name);
    const held: VersionEntity[] = [];
    for (const version of await this.versions.list(tx, project, name))
      held.push(await this.versions.lock(tx, project, name, version.number));
    return held;
  }

  private async idOf(tx: Tx, project: string, name: string): Promise<string> {
    return (await this.models.find(tx, project, name))!.id;
  }

  private async callers(tx: Tx, model: string, number: number | null): Promise<string[]> {
    const versions = await this.versions.versionsUsing(tx, model, number);
    return versions.filter((one) => !one.startsWith(`${model}@`)).map((one) => `version ${one} (its code calls it)`);
  }
}

function refuseUsed(project: string, name: string, number: number | null, users: readonly string[]): void {
  if (users.length === 0) return;
  const thing = number === null ? `model ${project}/${name}` : `version ${number} of model ${project}/${name}`;
  const more = users.length > 5 ? `; and ${users.length - 5} more` : '';
  throw new AppError(
    'conflict',
    `${thing} is in use by ${users.slice(0, 5).join('; ')}${more}; take it out of use first`,
    { details: { users } },
  );
}
