import type { Command } from 'commander';
import { addVerb, type Verb } from '../verb.ts';

const verbs: Record<'create' | 'list' | 'config', Omit<Verb, 'load'>> = {
  create: {
    usage: 'create',
    summary: 'name this installation as a serving service: a context, whose name --id takes',
    examples: ['perch create --name "serving example"'],
    options: (command) =>
      command
        .option('--name <name>', 'of the service', 'Serving-Service')
        .option('--tags <tags...>', 'not used: a context has none')
        .option('--project <name>', 'not used: a context has none'),
  },
  list: { usage: 'list', summary: 'serving services, that is: contexts', examples: ['perch list'] },
  config: {
    usage: 'config',
    summary: 'settings of the serving service',
    examples: ['perch config --base-serving-url http://127.0.0.1:8090/serve'],
    options: (command) =>
      command
        .option('--base-serving-url <url>', 'where the router answers')
        .option('--triton-grpc-server <host:port>', 'checked against the fleet')
        .option('--kafka-metric-server <host:port>', 'not used: every program has /metrics')
        .option('--metric-log-freq <share>', 'not used: every request is counted'),
  },
};

/** ClearML's words for the installation itself. */
export function define(program: Command, noun: string): void {
  const name = noun as keyof typeof verbs;
  addVerb(program, { ...verbs[name], load: async () => ({ run: (await import('./clearml-run.ts')).runs[name] }) });
}
