import { createServer } from 'node:net';

/** Below what Linux hands out for outgoing connections: nobody takes such a port while its owner is away for a moment. */
const firstPort = 20_000;
const portCount = 12_000;
const given = new Set<number>();

const isFree = (port: number) =>
  new Promise<boolean>((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });

/** Ports of 127.0.0.1 that stay free for whoever got them, through any number of restarts. */
export async function reservePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = firstPort + Math.floor(Math.random() * portCount);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    ports.push(port);
  }
  return ports;
}
