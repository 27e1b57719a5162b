import { createServer } from 'node:net';
import { freePort } from './embedded-postgres.source.ts';
import type { Ports, ServerPorts } from './program.plan.ts';

export const isFree = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });

/** The first free one of `wanted`, else any. */
async function choose(wanted: readonly (number | undefined)[]): Promise<number> {
  for (const port of wanted) if (port && (await isFree(port))) return port;
  return freePort();
}

interface Asked {
  controlPort: number | undefined;
  routerPort: number | undefined;
  servers: number;
}

const serverPorts = async (last: Partial<ServerPorts>): Promise<ServerPorts> => ({
  agent: await choose([last.agent]),
  http: await choose([last.http]),
  grpc: await choose([last.grpc]),
  metrics: await choose([last.metrics]),
});

/**
 * Ports of all programs: what was asked for as it stands (somebody else on it is an error when the program starts; 0 is
 * any), else the ones of the last run, else the usual ones, else any that is free.
 */
export async function choosePorts({ controlPort, routerPort, servers }: Asked, last: Partial<Ports>): Promise<Ports> {
  const anyControl = controlPort === 0;
  const anyRouter = routerPort === 0 || (anyControl && routerPort === undefined);
  return {
    control: controlPort || (await choose(anyControl ? [] : [last.control, 8080])),
    router: routerPort || (await choose(anyRouter ? [] : [last.router, 8090])),
    servers: await Promise.all(Array.from({ length: servers }, (_, place) => serverPorts(last.servers?.[place] ?? {}))),
  };
}
