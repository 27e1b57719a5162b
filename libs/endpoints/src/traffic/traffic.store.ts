import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';
import { QuarantineStore } from './quarantine.store.ts';
import { noForce, noWish, type TrafficForce, type TrafficWish } from './traffic.plan.ts';

export interface TrafficRow {
  wish: TrafficWish;
  force: TrafficForce;
}

/** The only SQL for the traffic of progressive endpoints. The row is locked after the endpoint's, never before. */
@Injectable()
export class TrafficStore {
  constructor(readonly quarantine: QuarantineStore) {}

  /** Locked until the transaction ends. Without a row: nobody has said anything yet. */
  async lock(tx: Tx, endpoint: string): Promise<TrafficRow> {
    const [row] = await tx.query('select wish, force from endpoint_traffic where endpoint = $1 for update', [endpoint]);
    return { wish: { ...noWish, ...row?.wish }, force: { ...noForce, ...row?.force } };
  }

  /** Those of several endpoints, for people's eyes. */
  async ofEndpoints(tx: Tx, endpoints: readonly string[]): Promise<Map<string, TrafficRow>> {
    const rows: (TrafficRow & { endpoint: string })[] = await tx.query(
      'select endpoint, wish, force from endpoint_traffic where endpoint = any($1)',
      [endpoints],
    );
    return new Map(
      rows.map(({ endpoint, wish, force }) => [
        endpoint,
        { wish: { ...noWish, ...wish }, force: { ...noForce, ...force } },
      ]),
    );
  }

  async saveForce(tx: Tx, endpoint: string, force: TrafficForce): Promise<void> {
    await this.save(tx, endpoint, noWish, force, 'force');
  }

  async saveWish(tx: Tx, endpoint: string, wish: TrafficWish): Promise<void> {
    await this.save(tx, endpoint, wish, noForce, 'wish');
  }

  /** Whatever was said is forgotten. True: something was. */
  async forget(tx: Tx, endpoint: string): Promise<boolean> {
    const [, count] = await tx.query('delete from endpoint_traffic where endpoint = $1', [endpoint]);
    return count > 0;
  }

  private async save(tx: Tx, endpoint: string, wish: TrafficWish, force: TrafficForce, half: 'wish' | 'force') {
    await tx.query(
      `insert into endpoint_traffic (endpoint, wish, force) values ($1, $2, $3)
       on conflict (endpoint) do update set ${half} = excluded.${half}, updated_at = now()`,
      [endpoint, JSON.stringify(wish), JSON.stringify(force)],
    );
  }
}
