import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';

/** `perch webhook …` */
export function define(program: Command): void {
  const webhook = program
    .command('webhook')
    .description('Addresses that are told of versions, deployments and rollouts: signed, in order, tried again.');
  const load = (name: 'add' | 'list' | 'remove' | 'test') => async () => ({
    run: (await import('./webhook-run.ts')).runs[name],
  });
  addVerb(webhook, {
    usage: 'add <name> <url>',
    summary: 'tell an address of events from now on; its secret is shown once, now',
    examples: [
      'perch webhook add ops https://hooks.example.com/perch',
      'perch webhook add pager https://pager.example.com/in --event rollout.rolled_back --event deployment.failed',
    ],
    options: (command) =>
      command
        .option('--event <type>', 'only this one (all when left out); may be repeated', many)
        .option('--secret-file <file>', 'sign with what this file holds (- for the standard input)'),
    load: load('add'),
  });
  addVerb(webhook, {
    usage: 'list',
    summary: 'all of them, with what waits for each and why',
    examples: ['perch webhook list'],
    load: load('list'),
  });
  addVerb(webhook, {
    usage: 'remove <name>',
    summary: 'stop telling it; what waits for it is forgotten',
    examples: ['perch webhook remove ops'],
    load: load('remove'),
  });
  addVerb(webhook, {
    usage: 'test <name>',
    summary: 'send a webhook.test now; exits 1 when it is not taken',
    examples: ['perch webhook test ops'],
    load: load('test'),
  });
}
