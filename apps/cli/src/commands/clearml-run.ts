import { AppError, type Server } from '@perch/contracts';
import { AdminClient } from '../admin.client.ts';
import type { Context } from '../context.store.ts';
import { said, shownList } from '../output.ts';
import type { Run } from '../verb.ts';

/** One installation serves everybody, so a new service is another name for it. */
const create: Run = async (invocation, _args, options) => {
  const { context } = await invocation.target();
  for (const flag of ['tags', 'project'] as const)
    if (options[flag]) invocation.note(`note: --${flag} is not used; a context has none`);
  const client = await invocation.admin();
  await client.call('/whoami');
  await invocation.contexts.save(options['name'], context);
  return said({ id: options['name'], url: context.url }, `New Serving Service created: id=${options['name']}`);
};

const list: Run = async (invocation) => {
  const { contexts, current } = await invocation.contexts.read();
  const look = async ([id, context]: [string, Context]) => {
    const client = new AdminClient(context);
    const state = await client.call('/status', { timeoutMs: 3_000 }).then(
      () => 'running',
      (error: Error) => error.message,
    );
    await client.close();
    return { id, url: context.url, state, current: id === current };
  };
  const items = await Promise.all(Object.entries(contexts).map(look));
  return shownList(
    items,
    [
      ['id', ({ id }) => id],
      ['control plane', ({ url }) => url],
      ['state', ({ state }) => state],
    ],
    'No running services found',
  );
};

const config: Run = async (invocation, _args, options) => {
  const { name, context } = await invocation.target();
  const done: string[] = [];
  if (options['baseServingUrl']) {
    const url = String(options['baseServingUrl'])
      .replace(/\/+$/, '')
      .replace(/\/serve$/, '');
    if (!URL.canParse(url))
      throw new AppError('invalid', `--base-serving-url: "${options['baseServingUrl']}" is no address`);
    if (name === 'PERCH_URL')
      throw new AppError('invalid', '--base-serving-url: PERCH_URL is in use; set PERCH_ROUTER_URL instead');
    const { current } = await invocation.contexts.read();
    await invocation.contexts.save(name, { ...context, routerUrl: url }, current === name);
    done.push(`router ${url}`);
  }
  if (options['tritonGrpcServer'])
    done.push(await knownTriton(await invocation.admin(), String(options['tritonGrpcServer'])));
  if (options['kafkaMetricServer'])
    invocation.note('note: --kafka-metric-server is not used; every program has its metrics at /metrics');
  if (options['metricLogFreq']) invocation.note('note: --metric-log-freq is not used; every request is counted');
  return said(
    { id: name, configured: done },
    done.length > 0 ? `Configured ${name}: ${done.join(', ')}` : `Nothing to configure on ${name}.`,
  );
};

/** A Triton joins by the agent beside it; an address alone gives nobody the right to change what it holds. */
async function knownTriton(client: AdminClient, address: string): Promise<string> {
  const servers = await client.list<Server>('/servers');
  const found = servers.find(({ grpc }) => grpc === address);
  if (found) return `Triton ${address} is server ${found.name}`;
  throw new AppError(
    'invalid',
    `--triton-grpc-server ${address}: no server of the fleet listens there. A Triton joins by the agent beside it: make a key with perch key join --server, then start the agent with PERCH_TRITON_GRPC=${address}`,
  );
}

export const runs = { create, list, config };
