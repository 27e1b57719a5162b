import { join } from 'node:path';
import { survivors, titanicFolder } from './model.mjs';

export const title = 'Titanic: a small network behind a module that turns rows of a table into tensors';
export const triton = true;

export async function run(example) {
  const folder = await example.step('train the network on 2,201 people (once)', titanicFolder);
  const version = await example.step('upload and publish it', () =>
    example.perch('model', 'upload', 'tabular/titanic', folder, '--publish'),
  );
  const module = await example.step('register the module', () =>
    example.perch('processing', 'add', join(example.folder, 'module'), '--name', 'titanic'),
  );
  await example.step('add the endpoint', () =>
    example.perch('endpoint', 'add', 'tabular/titanic', '--model', 'tabular/titanic', '--processing', `titanic@${module.number}`, '--wait=120s'),
  ); // biome-ignore format: one command
  example.checkThat('the version is the first one', version.number >= 1, version);

  const passengers = survivors.map(({ class: rank, sex, age }) => ({ class: rank, sex, age }));
  const { survived, probability } = await example.step('ask for every kind of passenger', () =>
    example.serve('tabular/titanic', { passengers }),
  );
  for (const [at, { class: rank, sex, age, count, share }] of survivors.entries()) {
    example.say(`${rank.padEnd(5)}${sex.padEnd(7)}${age.padEnd(6)} ${probability[at].toFixed(3)} of ${count} people, in truth ${share.toFixed(3)}`); // biome-ignore format: one line
    // groups of some size tell what the network must have learned
    if (count >= 90) example.check(`${rank} ${sex} ${age}`, probability[at], share, 0.08);
  }
  example.check('women of the first class lived', survived[3], true);
  example.check('men of the third died', survived[10], false);
}
