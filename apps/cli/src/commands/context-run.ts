import { AppError } from '@perch/contracts';
import type { Context } from '../context.store.ts';
import { said, shownFacts, shownList } from '../output.ts';
import type { Run } from '../verb.ts';

/** A context without its secret. */
const shownContext = (name: string, { apiKey, ...context }: Context, current: boolean) => ({
  name,
  ...context,
  key: apiKey ? `${apiKey.slice(0, 6)}…` : 'none',
  current,
});

const list: Run = async (invocation) => {
  const { contexts, current } = await invocation.contexts.read();
  const items = Object.entries(contexts).map(([name, context]) => shownContext(name, context, name === current));
  return shownList(
    items,
    [
      ['', (item) => (item.current ? '*' : ' ')],
      ['name', (item) => item.name],
      ['control plane', (item) => item.url],
      ['router', (item) => item.routerUrl],
      ['key', (item) => item.key],
    ],
    'No contexts yet. Next: perch up, or perch login URL',
  );
};

const show: Run = async (invocation, [name]) => {
  const { contexts, current } = await invocation.contexts.read();
  const wanted = name ?? invocation.global.context ?? current;
  if (!wanted) throw new AppError('not_found', 'no context is in use; perch context list shows what there is');
  const context = contexts[wanted];
  if (!context)
    throw new AppError('not_found', `there is no context ${wanted}; perch context list shows what there is`);
  const value = shownContext(wanted, context, wanted === current);
  return shownFacts(value, Object.entries(value));
};

const use: Run = async (invocation, [name]) => {
  await invocation.contexts.use(name as string);
  return said({ current: name }, `Context ${name} is the current one.`);
};

const remove: Run = async (invocation, [name]) => {
  await invocation.contexts.remove(name as string);
  return said({ removed: name }, `Context ${name} is forgotten.`);
};

export const runs = { list, show, use, remove };
