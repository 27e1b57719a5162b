import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';

function splitFlags(command: Command): void {
  command
    .optionsGroup('Where requests go:')
    .option('--target <target=weight>', 'text/a=90 (an endpoint) or text/a/7=10 (one version); may be repeated', many)
    .option('--prefix <prefix>', 'all versions below whole segments, text/ or text/minilm; with --newest-first')
    .option('--newest-first <weights>', '0.1,0.9: the first for the newest version')
    .optionsGroup('How:')
    .option('--sticky <header>', 'one user, named by this header, stays on one target; none ends it')
    .option('--access <who>', 'key or public')
    .option('--description <text>');
}

/** `perch split …` */
export function define(program: Command): void {
  const split = program.command('split').description('One name over several endpoints or versions, by weight.');
  addVerb(split, {
    usage: 'add <name>',
    summary: "share a name's requests out by weight; under an endpoint's own name this sets its weights",
    examples: [
      'perch split add text/ab --target text/minilm=90 --target text/bert=10 --sticky x-user-id',
      'perch split add text/minilm --target text/minilm/7=10 --target text/minilm/6=90',
      'perch split add text/canary --prefix text/minilm --newest-first 0.1,0.9 --wait',
      'perch split add text/ab -f split.yaml',
    ],
    options: (command) => {
      command.option('-f, --file <file>', 'the whole specification as YAML or JSON; flags go over it');
      splitFlags(command);
    },
    waits: '60s',
    load: async () => ({ run: (await import('./split-change.ts')).add }),
  });
  addVerb(split, {
    usage: 'update <name>',
    summary: 'change what the flags name, and leave the rest; targets given replace all there were',
    examples: ['perch split update text/ab --target text/minilm=50 --target text/bert=50 --wait'],
    options: (command) => {
      command.option('--if-generation <n>', 'only if nobody changed it since');
      splitFlags(command);
    },
    waits: '60s',
    load: async () => ({ run: (await import('./split-change.ts')).update }),
  });
  addVerb(split, {
    usage: 'list',
    summary: 'all splits and where their requests go now',
    examples: ['perch split list'],
    load: async () => ({ run: (await import('./split-show.ts')).list }),
  });
  addVerb(split, {
    usage: 'show <name>',
    summary: 'where each share goes now, what is missing, and why',
    examples: ['perch split show text/ab', 'perch split show text/ab -o json'],
    load: async () => ({ run: (await import('./split-show.ts')).show }),
  });
  addVerb(split, {
    usage: 'remove <name>',
    summary: 'take the name away; what it sent to goes on under the names of the endpoints',
    examples: ['perch split remove text/ab'],
    options: (command) => void command.option('--if-generation <n>', 'only if nobody changed it since'),
    load: async () => ({ run: (await import('./split-change.ts')).remove }),
  });
}
