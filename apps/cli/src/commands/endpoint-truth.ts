import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

const reason = (command: Command) => command.option('--reason <text>', 'why; kept in the history');

/** What is true of an endpoint now, and its switch. */
export function defineTruth(endpoint: Command): void {
  addVerb(endpoint, {
    usage: 'why <name>',
    summary: 'why a version is served or not: each link from its name to its traffic; exits 1 when it is not served',
    examples: ['perch endpoint why text/minilm', 'perch endpoint why text/minilm --version 7 -o json'],
    options: (command) =>
      void command.option('--version <n>', 'which version (the fixed one, else the newest when left out)'),
    load: () => import('./endpoint-why.ts'),
  });
  addVerb(endpoint, {
    usage: 'stats <name>',
    summary: 'requests per second, latencies, errors and retries by version, counted by the routers',
    examples: [
      'perch endpoint stats text/minilm',
      'perch endpoint stats text/minilm --over 30s --by-router',
      'perch endpoint stats text/minilm --watch',
    ],
    options: (command) =>
      void command
        .option('--over <time>', 'counted over so long (10s)', '10s')
        .option('--watch', 'again and again, until Ctrl-C')
        .option('--by-router', 'a line for each router')
        .option('--totals', 'do not wait: what was counted since each router began'),
    load: () => import('./endpoint-stats.ts'),
  });
  addVerb(endpoint, {
    usage: 'logs <name>',
    summary: "what happened to it, and what its servers' consoles said of its models; newest last",
    examples: ['perch endpoint logs text/minilm --since 1h', 'perch endpoint logs text/minilm --follow'],
    options: (command) =>
      void command
        .option('--since <time>', 'only what is younger, e.g. 30m')
        .option('--follow', 'go on with what comes, until Ctrl-C')
        .option('--limit <n>', 'at most so many of the newest (100)', '100'),
    load: () => import('./endpoint-logs.ts'),
  });
  addVerb(endpoint, {
    usage: 'stop <name>',
    summary: 'unload it and keep its specification; requests are told that it is stopped',
    examples: ['perch endpoint stop text/minilm --reason "saves memory" --wait'],
    options: (command) => void reason(command),
    waits: '60s',
    load: async () => ({ run: (await import('./endpoint-switch.ts')).runSwitch('stop') }),
  });
  addVerb(endpoint, {
    usage: 'start <name>',
    summary: 'serve a stopped endpoint again',
    examples: ['perch endpoint start text/minilm --wait'],
    options: (command) => void reason(command),
    waits: '60s',
    load: async () => ({ run: (await import('./endpoint-switch.ts')).runSwitch('start') }),
  });
}
