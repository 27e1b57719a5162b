import { AppError, type Endpoint } from '@perch/contracts';
import { said } from '../output.ts';
import { specFromFlags } from '../spec/flags.plan.ts';
import { readConfigFile, readSpecs } from '../spec/spec-file.source.ts';
import type { Options, Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { waitReady } from './ready.ts';

/** Text of `--config FILE`, if given. */
export const configOf = async (options: Options): Promise<string | undefined> =>
  options['config'] === undefined ? undefined : readConfigFile(options['config'], '--config');

export const run: Run = async (invocation, [name], options) => {
  let before: Record<string, unknown> = {};
  if (options['file']) {
    const documents = await readSpecs(options['file']);
    if (documents.length !== 1)
      throw new AppError(
        'invalid',
        `${options['file']}: holds ${documents.length} documents; perch apply -f takes several`,
      );
    before = documents[0]!.spec;
    if (before['name'] !== undefined && before['name'] !== name)
      throw new AppError('invalid', `${options['file']} is for endpoint ${before['name']}, and ${name} was asked for`);
  }
  const spec = { ...specFromFlags(options, before, await configOf(options)), kind: 'Endpoint', name };
  // without a model, a module does all the work; the control plane says so where none is named
  if (!spec.model && spec.engine?.platform !== 'custom')
    throw new AppError('invalid', 'which model? Give --model project/name (or -f with a specification)');
  const client = await invocation.admin();
  const made = await client.call<Endpoint>('/endpoints', { method: 'POST', body: spec });
  const limitMs = waitMs(options['wait']);
  if (limitMs === undefined) {
    invocation.hint(`Next: perch endpoint show ${name}`);
    return said(made, `Endpoint ${name} is added (generation ${made.generation}): ${made.status.message}`);
  }
  const ready = await waitReady(client, made, limitMs);
  return said(ready, `Endpoint ${name} serves version ${ready.status.servingVersions.join(', ')}.`);
};
