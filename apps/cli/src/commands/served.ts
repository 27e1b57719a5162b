import { AppError, type Endpoint, type Version } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { versionText } from '../reference.ts';
import { waitUntil } from '../wait.ts';

const follows = (endpoint: Endpoint, version: Version): boolean => {
  const { project, name, version: fixed } = endpoint.spec.model;
  return project === version.project && name === version.name && (fixed === undefined || fixed === version.number);
};

/**
 * Waits until an endpoint serves the version, and says which one, as a sentence to append. Which endpoints take it is
 * the control plane's decision: when none has an endpoint for this model there is nothing to wait for.
 */
export async function waitServed(client: AdminClient, version: Version, limitMs: number): Promise<string> {
  const first = (await client.list<Endpoint>('/endpoints')).filter((endpoint) => follows(endpoint, version));
  if (first.length === 0) return ' No endpoint follows this model yet (perch endpoint add).';
  let serving: string[] = [];
  await waitUntil(
    async () => {
      const endpoints = (await client.list<Endpoint>('/endpoints')).filter((endpoint) => follows(endpoint, version));
      const found = endpoints.flatMap(({ name, deployments }) =>
        deployments
          .filter((deployment) => deployment.version === version.number)
          .map((deployment) => ({ name, ...deployment })),
      );
      const failed = found.find(({ state }) => state === 'failed');
      if (failed && found.every(({ state }) => state === 'failed'))
        throw new AppError('upstream', `${versionText(version)} failed on endpoint ${failed.name}: ${failed.reason}`);
      serving = endpoints
        .filter(({ status }) => status.servingVersions.includes(version.number))
        .map(({ name }) => name);
      const states = found.map(({ name, state }) => `${name}: ${state}`).join(', ');
      return { done: serving.length > 0, standing: states || 'no endpoint has taken it' };
    },
    limitMs,
    `${versionText(version)} served`,
  );
  return ` Served by ${serving.join(', ')}.`;
}
