import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

const reason = (command: Command) => command.option('--reason <text>', 'why; kept in the events and the audit log');
const policy = (command: Command) =>
  command.option('--policy <name|file>', "default, quick, or a YAML file with what differs (the endpoint's own)");

/** `perch rollout …` */
export function define(program: Command): void {
  const rollout = program
    .command('rollout')
    .description(
      'Move the traffic of an endpoint to a new version by evidence. <name>: an endpoint, or the id of a rollout.',
    );
  defineReading(rollout);
  defineBefore(rollout);
  defineCommands(rollout);
}

function defineReading(rollout: Command): void {
  addVerb(rollout, {
    usage: 'list',
    summary: 'rollouts that go on',
    examples: ['perch rollout list', 'perch rollout list --all --endpoint text/minilm'],
    options: (command) =>
      void command.option('--all', 'those that are over too').option('--endpoint <name>', 'of this endpoint'),
    load: () => import('./rollout-list.ts'),
  });
  addVerb(rollout, {
    usage: 'show <name>',
    summary: 'where it stands: traffic, counts, bounds, what comes next, events',
    examples: ['perch rollout show text/minilm', 'perch rollout show text/minilm -o json'],
    load: () => import('./rollout-show.ts'),
  });
  addVerb(rollout, {
    usage: 'watch <name>',
    summary: 'follow it until it is over: exit code 0 when promoted, 1 when rolled back or aborted',
    examples: [
      'perch rollout watch text/minilm',
      'perch rollout watch text/minilm >> rollout.log     # a line for each change',
    ],
    options: (command) =>
      void command
        .option('--every <time>', 'how often it is asked (1s)', '1s')
        .option('--wait <time>', 'so long one may take to begin; then the last one is shown (5s)'),
    load: () => import('./rollout-watch.ts'),
  });
  addVerb(rollout, {
    usage: 'explain <name>',
    summary: 'why it decided as it did, computed again from what was stored; exits 1 when that does not agree',
    examples: ['perch rollout explain text/minilm', 'perch rollout explain text/minilm --event 41'],
    options: (command) => void command.option('--event <id>', 'which decision (the last decisive one when left out)'),
    load: () => import('./rollout-explain.ts'),
  });
}

function defineBefore(rollout: Command): void {
  addVerb(rollout, {
    usage: 'simulate <endpoint>',
    summary: 'what a policy would do at the rates of this endpoint: time to promote, false alarms, what it finds',
    examples: [
      'perch rollout simulate text/minilm',
      'perch rollout simulate text/minilm --policy policy.yaml --rpm 600 --error-rate 0.1%',
    ],
    options: (command) =>
      void policy(command)
        .option('--rpm <n>', 'requests a minute (measured when left out)')
        .option('--error-rate <share>', 'of stable, as 0.1% or 0.001 (measured when left out)')
        .option('--runs <n>', 'simulated rollouts (500)')
        .option('--seed <n>', 'another one gives other runs (1)'),
    load: () => import('./rollout-simulate.ts'),
  });
  addVerb(rollout, {
    usage: 'start <endpoint>',
    summary: 'start one by hand; with traffic.mode progressive, publishing a version does it',
    examples: [
      'perch rollout start text/minilm --version 7 --wait=1h',
      'perch rollout start text/minilm --policy quick --dry-run',
    ],
    options: (command) =>
      void reason(
        policy(command)
          .option('--version <n>', 'which (the newest that the rule wants when left out)')
          .option('--allow-breaking', 'also when inputs or outputs differ in a way that breaks callers')
          .option('--dry-run', 'only say whether it could start, and how'),
      ),
    waits: '1h',
    load: () => import('./rollout-start.ts'),
  });
}

const commands = [
  ['pause', 'hold it where it is; a rollback by evidence still happens', '--reason "dashboards first" --wait'],
  ['resume', 'let a paused one go on', ''],
  ['advance', 'take the next step now, without waiting for evidence', '--reason "tested by hand"'],
  ['promote', 'give all traffic to the new version now', '--reason "fixes an outage" --wait'],
  ['abort', 'end it without judging the version: all traffic back to stable', '--wait'],
  ['rollback', 'refuse the version: back to stable, also after the promotion while the old one is kept', '--reason "wrong labels" --wait'],
] as const; // biome-ignore format: a table

function defineCommands(rollout: Command): void {
  for (const [verb, summary, flags] of commands)
    addVerb(rollout, {
      usage: `${verb} <name>`,
      summary,
      examples: [`perch rollout ${verb} text/minilm ${flags}`.trim()],
      options: (command) => void reason(command),
      waits: '30s',
      load: async () => ({ run: (await import('./rollout-command.ts')).runCommand(verb) }),
    });
}
