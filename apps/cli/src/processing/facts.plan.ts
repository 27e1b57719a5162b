import { AppError, type ModuleFacts, moduleFacts, moduleHooks, parseWith } from '@perch/contracts';

/** The default export of a bundle: of each member its type, and the members that are no functions. */
export interface Seen {
  types: Record<string, string>;
  plain: Record<string, unknown>;
}

const declared = Object.keys(moduleFacts.shape).filter((key) => key !== 'hooks');

/** Throws `invalid` for hooks that are no functions, for a module that does nothing, and for declarations that are wrong. */
export function factsOf({ types, plain }: Seen): { facts: ModuleFacts; unknown: string[] } {
  const hooks = moduleHooks.filter((hook) => hook in types);
  for (const hook of hooks)
    if (types[hook] !== 'function' && types[hook] !== 'undefined')
      throw new AppError('invalid', `the module's ${hook} is no function but ${types[hook]}`);
  const present = hooks.filter((hook) => types[hook] === 'function');
  if (!present.some((hook) => ['preprocess', 'process'].includes(hook)))
    throw new AppError(
      'invalid',
      'the module has neither preprocess nor process: it would hand bodies to the model as they are',
    );
  const wish = Object.fromEntries(declared.filter((key) => plain[key] !== undefined).map((key) => [key, plain[key]]));
  const facts = parseWith(moduleFacts, { hooks: present, ...wish }, 'the module');
  const known = new Set<string>([...moduleHooks, ...declared, 'defaults']);
  return { facts, unknown: Object.keys(types).filter((key) => !known.has(key)) };
}
