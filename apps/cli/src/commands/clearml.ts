import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** ClearML's words for the installation itself. */
export function define(program: Command): void {
  const load = (name: 'create' | 'list' | 'config') => async () => ({
    run: (await import('./clearml-run.ts')).runs[name],
  });
  const known = new Set(program.commands.map((command) => command.name()));
  if (!known.has('create'))
    addVerb(program, {
      usage: 'create',
      summary: 'name this installation as a serving service: a context, whose name --id takes',
      examples: ['perch create --name "serving example"'],
      options: (command) =>
        command
          .option('--name <name>', 'of the service', 'Serving-Service')
          .option('--tags <tags...>', 'not used: a context has none')
          .option('--project <name>', 'not used: a context has none'),
      load: load('create'),
    });
  if (!known.has('list'))
    addVerb(program, {
      usage: 'list',
      summary: 'serving services, that is: contexts',
      examples: ['perch list'],
      load: load('list'),
    });
  if (!known.has('config'))
    addVerb(program, {
      usage: 'config',
      summary: 'settings of the serving service',
      examples: ['perch config --base-serving-url http://127.0.0.1:8090/serve'],
      options: (command) =>
        command
          .option('--base-serving-url <url>', 'where the router answers')
          .option('--triton-grpc-server <host:port>', 'checked against the fleet')
          .option('--kafka-metric-server <host:port>', 'not used: every program has /metrics')
          .option('--metric-log-freq <share>', 'not used: every request is counted'),
      load: load('config'),
    });
}
