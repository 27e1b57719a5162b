import { Inject, Injectable } from '@nestjs/common';
import { type Actor, systemActor } from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx } from '@perch/platform/database';
import { DocumentStore } from './documents/document.store.ts';

export interface InstallationState {
  lineage: string;
  confirmed: boolean;
  pastLineages: string[];
}

/** The one row that says which history this database belongs to, and whether removals in it are meant. */
@Injectable()
export class Installation {
  constructor(
    private readonly transactions: Transactions,
    private readonly documents: DocumentStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  async current(): Promise<InstallationState> {
    return Installation.read(this.transactions.manager);
  }

  static async read(tx: Tx): Promise<InstallationState> {
    const [row] = await tx.query('select lineage, confirmed, past_lineages from installation');
    return { lineage: row.lineage, confirmed: row.confirmed, pastLineages: row.past_lineages };
  }

  /**
   * Somebody holds what this database never gave: it was set back in time. Starts a new, unconfirmed lineage, so that
   * nothing is unloaded until a person confirms. `seenLineage` is the one the finding was made in: many find it at once,
   * and only the first changes anything. `foreign` is the finder's own lineage; it is known from then on.
   */
  async rotate(seenLineage: string, foreign: string | null, finding: string): Promise<void> {
    await this.transactions.run(async (tx) => {
      const [row] = await tx.query('select lineage from installation for update');
      if (foreign !== null && foreign !== row.lineage)
        await tx.query(
          `update installation set past_lineages = array_append(past_lineages, $1::uuid) where $1 <> all(past_lineages)`,
          [foreign],
        );
      if (row.lineage !== seenLineage) return;
      await tx.query(
        `update installation set lineage = gen_random_uuid(), confirmed = false,
           past_lineages = array_append(past_lineages, lineage)`,
      );
      await this.documents.republishAll(tx);
      await this.changes.record(tx, systemActor, 'installation.went-back', 'installation', { finding });
    });
  }

  /** A person says that the database as it stands is the truth: removals are carried out from now on. */
  async confirm(actor: Actor): Promise<InstallationState> {
    return this.transactions.run(async (tx) => {
      await tx.query('select 1 from installation for update');
      const state = await Installation.read(tx);
      const [held] = await tx.query(`select exists (select 1 from documents where not confirmed) as any`);
      if (state.confirmed && !held.any) return state;
      await tx.query('update installation set confirmed = true');
      await tx.query(`update document_entries set unmeant = '{}' where unmeant <> '{}'`);
      await tx.query('update documents set confirmed = true where not confirmed');
      await this.documents.republishAll(tx);
      await this.changes.record(tx, actor, 'fleet.confirm', 'installation', { lineage: state.lineage });
      return { ...state, confirmed: true };
    });
  }
}
