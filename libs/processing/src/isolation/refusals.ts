import dgram from 'node:dgram';
import dns from 'node:dns';
import net from 'node:net';

/** Says what was asked for in the way of Node's permission model. */
function refused(permission: string, resource: string): Error {
  return Object.assign(new Error('Access to this API has been restricted'), {
    code: 'ERR_ACCESS_DENIED',
    permission,
    resource,
  });
}

const asText = (given: unknown): string =>
  typeof given === 'object' && given !== null
    ? [(given as { host?: unknown }).host, (given as { port?: unknown }).port, (given as { path?: unknown }).path].filter(Boolean).join(':') // biome-ignore format: one row reads better
    : String(given ?? '');

/**
 * Makes the network's functions say that they are refused. Words for honest mistakes, no boundary: what is patched can be
 * got around; the boundary is the network namespace that the process is started in, where there is one.
 */
export function refuseNetwork(): void {
  const refuse = (what: string) =>
    function refuses(...given: unknown[]): never {
      throw refused('Network', `${what} ${given.flat().slice(0, 2).map(asText).filter(Boolean).join(' ')}`.trim());
    };
  const fetches = refuse('fetch of');
  globalThis.fetch = async (given: unknown) => fetches(given instanceof Request ? given.url : given);
  net.Socket.prototype.connect = refuse('connect to') as never;
  net.Server.prototype.listen = refuse('listen on') as never;
  for (const name of ['bind', 'connect', 'send'] as const)
    dgram.Socket.prototype[name] = refuse(`datagram ${name}`) as never;
  for (const place of [dns, dns.promises] as unknown as Record<string, unknown>[])
    for (const name of ['lookup', 'resolve', 'resolve4', 'resolve6']) place[name] = refuse('look-up of');
}

/** Names that code looks at in passing; they are not there, and that is no news. */
const harmless = /^(NODE_|npm_|LC_|DEBUG|NO_COLOR$|FORCE_COLOR$|TERM$|TZ$|LANG$|CI$)/;

/** Node and the SDK have files; a bundle is known by its name alone. */
const fromBundle = (frame = ''): boolean => !frame.includes('node:') && !frame.includes('file:');

/** There is no environment; a module that looks for a variable is told so. */
export function refuseEnvironment(): void {
  const value = new Proxy<Record<string, string>>(
    {},
    {
      get(_, name) {
        if (typeof name === 'symbol' || harmless.test(name)) return undefined;
        if (fromBundle(new Error().stack?.split('\n')[2])) throw refused('Environment', name);
        return undefined;
      },
    },
  );
  Object.defineProperty(process, 'env', { value });
}
