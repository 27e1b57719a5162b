import type { Actor } from '@perch/contracts';
import type { Tx } from './transactions.ts';

/**
 * Every change has an actor and a row: libs record here, in the transaction of the change; the control plane binds it to
 * the audit log and to the events of the admin API. `action` is dotted (`version.publish`), `subject` names the thing.
 */
export interface ChangeLog {
  record(tx: Tx, actor: Actor, action: string, subject: string, detail: Record<string, unknown>): Promise<void>;
}
export const CHANGE_LOG = Symbol('change log');
