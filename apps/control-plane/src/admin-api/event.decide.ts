import type { Actor, ChangeEvent } from '@perch/contracts';
import { atLeast, inScopes } from './scope.decide.ts';

/** Things that lie within a project; their subject starts with its name. */
const ofProjects = /^(model|version)\./;
const ofEndpoints = /^(endpoint|deployment|rollout|quarantine|split)\./;
/** Who holds which key, and who is told of what, is nobody's business but an admin's. */
const ofAdmins = /^(key|join-key|webhook)\./;

/** Whether the caller may see an event: what he could read by asking for its subject. */
export function maySee(actor: Actor, { type, subject }: Pick<ChangeEvent, 'type' | 'subject'>): boolean {
  if (ofAdmins.test(type)) return atLeast(actor.role, 'admin');
  if (ofProjects.test(type)) return inScopes(actor.projects, subject.split('/')[0]!);
  if (ofEndpoints.test(type)) return inScopes(actor.endpoints, subject);
  return true;
}
