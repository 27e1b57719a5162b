import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';

/** `perch pipeline …` */
export function define(program: Command): void {
  const pipeline = program
    .command('pipeline')
    .description('Endpoints and modules behind and beside one another, as one: written as YAML or in TypeScript.');
  defineChanges(pipeline);
  defineReading(pipeline);
  addVerb(pipeline, {
    usage: 'run <pipeline>',
    summary: 'send one request to it; with --local run a file on this computer, whose endpoints are asked over HTTP',
    examples: [
      `perch pipeline run vision/rank --json '{"image": "…"}' --trace`,
      'perch pipeline run rank.ts --local --file request.json',
      'perch pipeline run rank.yaml --local --json 1 --stub detect=detected.json --module vision/crop=./crop',
    ],
    options: (command) =>
      command
        .option('--json <body>', 'the body of the request')
        .option('--file <file>', 'the body from a file; - reads it from the standard input')
        .option('--trace', 'also show when each node began, how long it took and what became of it')
        .option('--router <url>', 'which router to ask')
        .option('--timeout <time>', '60s')
        .optionsGroup('On this computer:')
        .option('--local', 'the pipeline is a file, and runs here')
        .option('--stub <node=file>', 'the JSON of a file in place of what the node answers; may be repeated', many)
        .option('--module <name=dir>', 'a module as it lies here, in place of the registered one; may be repeated', many), // biome-ignore format: one row reads better
    load: () => import('./pipeline-run.ts'),
  });
  addVerb(pipeline, {
    usage: 'export <name> <dir>',
    summary: 'write models, modules and specification into a folder, with a container file that serves them',
    examples: ['perch pipeline export vision/rank ./exported'],
    options: (command) => command.option('--force', 'also into a folder that is not empty'),
    load: () => import('./pipeline-export.ts'),
  });
}

function defineChanges(pipeline: Command): void {
  const load = (name: 'add' | 'remove' | 'rollback') => async () => ({
    run: (await import('./pipeline-change.ts'))[name],
  });
  addVerb(pipeline, {
    usage: 'add <file>',
    summary: 'add the pipeline of a file, or change it; everything that it names must be there',
    examples: ['perch pipeline add rank.yaml --wait', 'perch pipeline add rank.ts --dry-run'],
    options: (command) => command.option('--dry-run', 'only say what would change'),
    waits: '60s',
    load: load('add'),
  });
  addVerb(pipeline, {
    usage: 'remove <name>',
    summary: 'take the name away; the endpoints that it asked stay',
    examples: ['perch pipeline remove vision/rank'],
    options: (command) => command.option('--if-generation <n>', 'only if nobody changed it since'),
    load: load('remove'),
  });
  addVerb(pipeline, {
    usage: 'rollback <name> <generation>',
    summary: 'back to an older generation, as a new one',
    examples: ['perch pipeline rollback vision/rank 3'],
    load: load('rollback'),
  });
}

function defineReading(pipeline: Command): void {
  const load = (name: 'list' | 'show' | 'history') => async () => ({
    run: (await import('./pipeline-show.ts'))[name],
  });
  addVerb(pipeline, {
    usage: 'list',
    summary: 'all pipelines, and whether they can answer',
    examples: ['perch pipeline list'],
    load: load('list'),
  });
  addVerb(pipeline, {
    usage: 'show <name>',
    summary: 'its nodes as a drawing; --physical with versions, servers and instances',
    examples: ['perch pipeline show vision/rank', 'perch pipeline show vision/rank --mermaid > rank.mmd'],
    options: (command) =>
      command
        .option('--mermaid', 'as a Mermaid flowchart')
        .option('--physical', 'which versions answer on which servers, instances and isolation'),
    load: load('show'),
  });
  addVerb(pipeline, {
    usage: 'history <name>',
    summary: 'every generation: who, when, why',
    examples: ['perch pipeline history vision/rank'],
    load: load('history'),
  });
}
