import type { Endpoint, Split } from '@perch/contracts';
import type { Column } from '../output.ts';

export interface Block {
  key: 'endpoints' | 'autoUpdating' | 'canary';
  title: string;
  rows: Record<string, unknown>[];
  columns: Column<Record<string, unknown>>[];
  none: string;
}

const column = (title: string, key: string): Column<Record<string, unknown>> => [title, (row) => row[key]];

const modelOf = ({ spec }: Endpoint) => `${spec.model.project}/${spec.model.name}`;

/** What ClearML's `model list` shows below its three headings, in our words. */
export function clearmlBlocks(endpoints: readonly Endpoint[], splits: readonly Split[]): Block[] {
  const fixed = endpoints.filter(({ spec }) => spec.model.version !== undefined);
  const following = endpoints.filter(({ spec }) => spec.model.version === undefined);
  const shared = (endpoint: Endpoint) => ({
    endpoint: endpoint.name,
    model: modelOf(endpoint),
    serving: endpoint.status.servingVersions,
    phase: endpoint.status.phase,
  });
  return [
    {
      key: 'endpoints',
      title: 'Endpoints:',
      rows: fixed.map((endpoint) => ({ ...shared(endpoint), version: endpoint.spec.model.version })),
      columns: [
        column('endpoint', 'endpoint'),
        column('model', 'model'),
        column('version', 'version'),
        column('phase', 'phase'),
      ],
      none: 'none with one fixed version',
    },
    {
      key: 'autoUpdating',
      title: 'Model Monitoring (auto-updating endpoints):',
      rows: following.map((endpoint) => ({
        ...shared(endpoint),
        maxVersions: endpoint.spec.model.maxVersions ?? 1,
        tags: endpoint.spec.model.select?.tags ?? [],
        onlyPublished: endpoint.spec.model.select?.published ?? true,
      })),
      columns: [
        column('endpoint', 'endpoint'),
        column('model', 'model'),
        column('serving', 'serving'),
        column('max versions', 'maxVersions'),
        column('tags', 'tags'),
        column('published only', 'onlyPublished'),
        column('phase', 'phase'),
      ],
      none: 'none',
    },
    {
      key: 'canary',
      title: 'Canary:',
      rows: splits.map(({ name, spec, message }) => ({
        endpoint: name,
        weights: spec.weights ?? spec.newestFirst,
        inputEndpoints: spec.targets ?? [],
        inputEndpointPrefix: spec.targetPrefix ?? null,
        now: message,
      })),
      columns: [
        column('endpoint', 'endpoint'),
        column('weights', 'weights'),
        column('input endpoints', 'inputEndpoints'),
        column('prefix', 'inputEndpointPrefix'),
        column('now', 'now'),
      ],
      none: 'none',
    },
  ];
}
