import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch processing …` */
export function define(program: Command): void {
  const processing = program
    .command('processing')
    .description(
      'Own pre- and postprocessing in TypeScript: written, tested and registered as modules, named by endpoints.',
    );
  addVerb(processing, {
    usage: 'new <dir>',
    summary: 'write a module to begin with: types, one fixture',
    examples: ['perch processing new sentiment --task text-classification', 'perch processing test sentiment'],
    options: (command) => command.option('--task <task>', 'what it does, by the name that such modules share'),
    load: () => import('./processing-new.ts'),
  });
  addVerb(processing, {
    usage: 'add <place>',
    summary: 'check, bundle and register a module.ts, or the folder of one',
    examples: [
      'perch processing add ./sentiment --name text/sentiment',
      'perch processing add ./sentiment.ts --dry-run',
      'perch endpoint update reviews --processing text/sentiment   # serve with it',
    ],
    options: (command) =>
      command
        .option('--name <name>', 'what endpoints call it; left out: the folder, or the file')
        .option('--description <text>')
        .option('--no-test', 'register it without running the fixtures that need no endpoint')
        .option('--dry-run', 'check and bundle only'),
    load: () => import('./processing-add.ts'),
  });
  addVerb(processing, {
    usage: 'test <place>',
    summary: 'run a module on this computer with its fixtures; exits 1 when a reply is not the wanted one',
    examples: [
      'perch processing test ./sentiment',
      'perch processing test ./sentiment --endpoint reviews --record   # keep what the model answers beside the fixtures',
      'perch processing test ./sentiment --fixture request.json --model real --endpoint reviews',
    ],
    options: (command) =>
      command
        .option('--fixture <file>', 'this request alone; a file without "wanted" only shows the reply')
        .option(
          '--model <which>',
          'real, recorded, or the file of a recording (left out: real with --endpoint, else recorded)',
        )
        .option('--endpoint <name>', 'whose model is asked, of the installation')
        .option('--record', 'write what the model answers beside each fixture')
        .option('--options <json>', "the module's options, as an endpoint would give them", '{}')
        .option('--isolation <where>', 'inline, worker or process', 'worker')
        .option('--router <url>', "in place of the context's router"),
    load: () => import('./processing-test.ts'),
  });
  defineKept(processing);
}

/** What is registered. */
function defineKept(processing: Command): void {
  const load = (name: 'list' | 'show' | 'remove') => async () => ({
    run: (await import('./processing-list.ts')).runs[name],
  });
  addVerb(processing, {
    usage: 'list [search]',
    summary: 'modules, the newest of each name; with --task also what requests and replies of the task look like',
    examples: ['perch processing list', 'perch processing list --task text-classification'],
    options: (command) => command.option('--task <task>', 'only modules of this task'),
    load: load('list'),
  });
  addVerb(processing, {
    usage: 'show <module>',
    summary: 'all numbers of a module, or one with its files',
    examples: ['perch processing show text/sentiment', 'perch processing show text/sentiment@3'],
    load: load('show'),
  });
  addVerb(processing, {
    usage: 'remove <module>',
    summary: 'remove one number of a module; refused while an endpoint uses it',
    examples: ['perch processing remove text/sentiment@3'],
    load: load('remove'),
  });
}
