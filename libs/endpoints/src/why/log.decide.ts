import type { EndpointLogLine, SpecChange } from '@perch/contracts';
import type { PlacementSight } from '@perch/fleet';

/** What is recorded of a change; see `ChangeLog`. */
export interface RecordedChange {
  at: string;
  actor: string;
  action: string;
  detail: Record<string, unknown>;
}

const mostChanges = 5;
const text = (value: unknown) => (value === null || value === undefined ? '(nothing)' : JSON.stringify(value));

function changesText(changes: readonly SpecChange[]): string {
  const shown = changes
    .slice(0, mostChanges)
    .map(({ path, before, after }) => `${path} ${text(before)} -> ${text(after)}`);
  const more = changes.length > mostChanges ? `, and ${changes.length - mostChanges} more` : '';
  return shown.join(', ') + more;
}

const because = (reason: unknown) => (typeof reason === 'string' && reason !== '' ? ` (${reason})` : '');

/** A sentence for a person; what a later release records is shown as it stands. */
export function changeWords(action: string, detail: Record<string, unknown>): string {
  const { generation, reason, version, phase, message } = detail;
  const changes = Array.isArray(detail['changes']) ? (detail['changes'] as SpecChange[]) : [];
  switch (action) {
    case 'endpoint.create':
      return `created as generation ${generation}${because(reason)}`;
    case 'endpoint.update':
      return `changed to generation ${generation}${because(reason)}: ${changesText(changes)}`;
    case 'endpoint.rollback':
      return `set back as generation ${generation}${because(reason)}: ${changesText(changes)}`;
    case 'endpoint.stop':
      return `stopped${because(reason)}`;
    case 'endpoint.start':
      return `started${because(reason)}`;
    case 'endpoint.resume':
      return `automatic updates go on${because(reason)}; ${detail['heldBy']} had held them`;
    case 'quarantine.add':
      return `version ${version} was refused${because(reason)}`;
    case 'quarantine.release':
      return `version ${version} may be deployed again`;
    case 'endpoint.remove':
      return `removed${because(reason)}`;
    case 'endpoint.status':
      return `${phase}: ${message}`;
    case 'deployment.create':
      return `version ${version}: deployment made as ${detail['tritonModel']}${because(reason)}`;
    case 'deployment.ready':
      return `version ${version} is ready`;
    case 'deployment.failed':
      return `version ${version} failed${because(reason)}`;
    case 'deployment.draining':
      return `version ${version} drains: routers let go of it`;
    case 'deployment.retired':
      return `version ${version} is unloaded`;
    default:
      if (action.startsWith('rollout.'))
        return `rollout ${action.slice('rollout.'.length).replaceAll('_', ' ')}: ${reason}`;
      return `${action} ${JSON.stringify(detail)}`;
  }
}

export const changeLine = ({ at, actor, action, detail }: RecordedChange): EndpointLogLine => ({
  at,
  source: 'perch',
  actor,
  action,
  message: changeWords(action, detail),
});

/**
 * What consoles of servers said of these models after their model server's last end. They tell no time, so none is
 * made up; a line that names the model counts, and all of a console whose server ended while it was loading one.
 */
export function consoleLines(sights: readonly PlacementSight[]): EndpointLogLine[] {
  const lines: EndpointLogLine[] = [];
  const servers = new Map(sights.map(({ server }) => [server.id, server]));
  for (const server of servers.values()) {
    const { supervision } = server.observed ?? {};
    if (!supervision || supervision.console.length === 0) continue;
    const names = sights.filter((sight) => sight.server.id === server.id).map(({ tritonModel }) => tritonModel);
    const own = supervision.console.filter((line) => names.some((name) => line.includes(name)));
    const at = null;
    const line = (message: string): EndpointLogLine => ({
      at,
      source: `server ${server.name}`,
      actor: null,
      action: 'console',
      message,
    });
    if (own.length > 0) lines.push(line(`its model server ended: ${supervision.lastExit ?? 'for an unknown reason'}`));
    lines.push(...own.map(line));
  }
  return lines;
}
