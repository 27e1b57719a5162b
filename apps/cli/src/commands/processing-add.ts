import { formatBytes } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import { type Shown, said } from '../output.ts';
import { runFixtures } from '../processing/fixture-set.ts';
import { nameOfPlace } from '../processing/module-folder.source.ts';
import { type PreparedModule, prepareModule } from '../processing/prepared-module.ts';
import { registerModule } from '../processing/register.apply.ts';
import { verdictsFault } from '../processing/verdict.plan.ts';
import type { Options, Run } from '../verb.ts';

export const run: Run = async (invocation, [place], options) => {
  const prepared = await prepareModule(place as string);
  try {
    for (const note of prepared.notes) invocation.note(note);
    const name = (options['name'] as string | undefined) ?? nameOfPlace(prepared.folder);
    const tested = options['test'] === false ? 0 : await testRecorded(invocation, prepared);
    return options['dryRun']
      ? wouldAdd(name, prepared, tested)
      : await add(invocation, name, prepared, tested, options);
  } finally {
    await prepared.close();
  }
};

/** Fixtures whose model's answers are recorded, or whose module asks no model, say at once whether the module does its work. */
async function testRecorded(invocation: Invocation, prepared: PreparedModule): Promise<number> {
  const verdicts = await runFixtures(prepared, { model: 'recorded', skipUnrecorded: true });
  const fault = verdictsFault(verdicts);
  if (fault) throw fault;
  for (const { name, told } of verdicts)
    for (const line of told.filter((one) => one.startsWith('note: '))) invocation.note(`${line} (fixture ${name})`);
  return verdicts.length;
}

async function add(
  invocation: Invocation,
  name: string,
  prepared: PreparedModule,
  tested: number,
  options: Options,
): Promise<Shown> {
  const client = await invocation.admin();
  const { module, outcome, sentBytes } = await registerModule(client, name, prepared, {
    description: options['description'],
    progress: invocation.output === 'table',
  });
  invocation.hint(`Next: perch endpoint update NAME --processing ${module.name}@${module.number}`);
  const how =
    outcome === 'registered'
      ? `registered (${factsText(prepared)}, ${formatBytes(sentBytes)} sent${testedText(tested)})`
      : 'already there with exactly these facts and bytes';
  return said({ ...module, outcome, sentBytes, tested }, `Module ${module.name}@${module.number} is ${how}.`);
}

function wouldAdd(name: string, { facts, manifest, digest, sources }: PreparedModule, tested: number): Shown {
  const files = manifest.map(({ path, size }) => `  ${path}  ${formatBytes(size)}`);
  const words = [
    `Module ${name} is good (${factsText({ facts } as PreparedModule)}${testedText(tested)}); nothing was registered. Its files:`,
    ...files,
    `bundled of ${sources.join(', ')}; digest ${digest.slice(0, 12)}`,
  ];
  return said({ name, facts, files: manifest, digest, sources, tested, dryRun: true }, words.join('\n'));
}

const factsText = ({ facts }: PreparedModule): string =>
  [...(facts.task ? [`task ${facts.task}`] : []), `hooks ${facts.hooks.join(', ')}`].join('; ');
const testedText = (tested: number): string =>
  tested === 0 ? '' : `, ${tested} ${tested === 1 ? 'fixture' : 'fixtures'} as wanted`;
