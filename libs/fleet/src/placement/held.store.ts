import { Injectable } from '@nestjs/common';
import type { DesiredModel } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { type HeldModel, type HeldNeed, planHeld } from '../desired.plan.ts';

/** What servers are to hold, and what they may lose. The only SQL that turns placements into documents. */
@Injectable()
export class HeldStore {
  /**
   * What one server is to hold: models under their own names, and needed ones under the names they are called by. Where
   * one name was placed twice, what was placed last stands. `measure`: nobody knows yet what it takes on this device.
   */
  async held(tx: Tx, server: string): Promise<HeldModel[]> {
    const models: Omit<HeldModel, 'needs'>[] = await tx.query(
      `select t.name, t.name as "tritonModel", t.digest,
         k.digest is null and s.facts is not null and t.body #>> '{engine,platform}' <> 'ensemble' as measure
       from triton_models t join servers s on s.id = $1
       left join model_memory k on k.digest = t.digest and k.device = s.device
       where t.name in (select triton_model from placements where server_id = $1 and state <> 'released'
         union select n.triton_model from placement_needs n join placements p using (deployment_id, server_id)
         where n.server_id = $1 and n.name = n.triton_model and p.state <> 'released')`,
      [server],
    );
    const needs: HeldNeed[] = await tx.query(
      `select p.triton_model as needer, n.name, n.triton_model as "tritonModel", t.digest
       from placement_needs n join placements p using (deployment_id, server_id) join triton_models t on t.name = n.triton_model
       where n.server_id = $1 and p.state <> 'released' order by p.placed_at, n.triton_model`,
      [server],
    );
    return planHeld(models, needs);
  }

  async bodies(tx: Tx, names: readonly string[]): Promise<{ name: string; body: DesiredModel }[]> {
    return tx.query('select name, body from triton_models where name = any($1)', [names]);
  }

  /** Names that a server may lose: a decision in the database let go of them. */
  async released(tx: Tx, server: string): Promise<Set<string>> {
    const rows: { name: string }[] = await tx.query(
      `select triton_model as name from placements where server_id = $1 and state = 'released'
       union select n.name from placement_needs n join placements p using (deployment_id, server_id)
       where n.server_id = $1 and p.state = 'released'
       union select name from dropped_models where server_id = $1`,
      [server],
    );
    return new Set(rows.map((row) => row.name));
  }

  /** The server's document says so now. `names`: what `released` answered. */
  async dropReleased(tx: Tx, server: string, names: readonly string[]): Promise<void> {
    await tx.query(`delete from placements where server_id = $1 and state = 'released' and triton_model = any($2)`, [
      server,
      names,
    ]);
    await tx.query('delete from dropped_models where server_id = $1 and name = any($2)', [server, names]);
  }
}
