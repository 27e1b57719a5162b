import { AppError, isolations } from '@perch/contracts';
import type { Invocation } from '../invocation.ts';
import { endpointModel } from '../processing/endpoint-model.client.ts';
import { type FixtureSettings, runFixtures } from '../processing/fixture-set.ts';
import { prepareModule } from '../processing/prepared-module.ts';
import { verdictsText } from '../processing/verdict.plan.ts';
import type { Options, Run } from '../verb.ts';

export const run: Run = async (invocation, [place], options) => {
  const settings = await settingsOf(invocation, options);
  const prepared = await prepareModule(place as string);
  try {
    for (const note of prepared.notes) invocation.note(note);
    const fixtures = await runFixtures(prepared, settings);
    if (fixtures.length === 0)
      throw new AppError(
        'invalid',
        `${place} has no fixtures; write fixtures/NAME.json with {"body": …, "wanted": …}, or give --fixture FILE`,
      );
    const bad = fixtures.filter(({ ok }) => ok === false).length;
    const sum = bad > 0 ? `${bad} of ${fixtures.length} fixtures differ` : `${fixtures.length} ran, none differs`;
    const value = { facts: prepared.facts, digest: prepared.digest, fixtures };
    return { value, text: () => `${verdictsText(fixtures)}\n${sum}`, exitCode: bad > 0 ? 1 : 0 };
  } finally {
    await prepared.close();
  }
};

async function settingsOf(invocation: Invocation, options: Options): Promise<FixtureSettings> {
  const { endpoint, record, fixture: only } = options;
  const which: string = options['model'] ?? (endpoint === undefined ? 'recorded' : 'real');
  const isolation = isolations.find((one) => one === options['isolation']);
  if (!isolation)
    throw new AppError('invalid', `--isolation: wants ${isolations.join(', ')}, got "${options['isolation']}"`);
  if (which === 'real' && endpoint === undefined)
    throw new AppError('invalid', '--model real wants --endpoint NAME: whose model is to be asked');
  if (record && which !== 'real')
    throw new AppError('invalid', '--record wants --endpoint NAME: whose answers are to be kept');
  const model =
    which === 'real'
      ? await endpointModel(await invocation.admin(options['router']), endpoint)
      : which === 'recorded'
        ? 'recorded'
        : { recording: which };
  return { model, record: record === true, only, isolation, endpoint, options: jsonOf(options['options']) };
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // said below
  }
  throw new AppError('invalid', `--options: wants a JSON object, got ${text.slice(0, 80)}`);
}
