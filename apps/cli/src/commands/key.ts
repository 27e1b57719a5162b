import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';

/** `perch key …` */
export function define(program: Command): void {
  const key = program
    .command('key')
    .description('API keys for people and programs, join keys for servers and routers.');
  const load = (name: 'create' | 'list' | 'revoke' | 'join') => async () => ({
    run: (await import('./key-run.ts')).runs[name],
  });
  addVerb(key, {
    usage: 'create <name>',
    summary: 'make a key; its secret is shown once, now',
    examples: [
      'perch key create ci --role publisher --project nlp',
      'perch key create app --role inference --endpoint "text/*" --expires 90d',
    ],
    options: (command) =>
      command
        .requiredOption('--role <role>', 'inference, viewer, publisher, operator, admin')
        .option('--project <scope>', 'only these: a name, or a prefix ending in /*; may be repeated', many)
        .option('--endpoint <scope>', 'only these; may be repeated', many)
        .option('--expires <time>', '90d, or a date'),
    load: load('create'),
  });
  addVerb(key, {
    usage: 'list',
    summary: 'all keys, without their secrets',
    examples: ['perch key list'],
    load: load('list'),
  });
  addVerb(key, {
    usage: 'revoke <id>',
    summary: 'end a key',
    examples: ['perch key revoke 0f3c…'],
    load: load('revoke'),
  });
  addVerb(key, {
    usage: 'join [name]',
    summary: 'make a key that servers or routers join with; shown once, now',
    examples: ['perch key join --server --pool gpu', 'perch key join --router'],
    options: (command) =>
      command
        .option('--server', 'for agents')
        .option('--router', 'for routers')
        .option('--pool <name>', 'pool of the servers', 'default'),
    load: load('join'),
  });
}
