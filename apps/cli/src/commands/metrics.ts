import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** ClearML's `metrics`: which values of an endpoint's requests are counted, and how. */
export function define(program: Command): void {
  const metrics = program.command('metrics').description("values of requests and replies as an endpoint's metrics");
  addVerb(metrics, {
    usage: 'add',
    summary: 'count values: what a module observes, or fields of replies and requests, by name',
    examples: [
      'perch metrics add --endpoint test_model_sklearn --variable-scalar x0=0,0.1,0.5,1,10 y=0/1/5',
      'perch metrics add --endpoint test_model_sklearn --variable-enum animal=cat,dog --variable-scalar _latency=0.01,0.1,1',
    ],
    options: (command) =>
      command
        .requiredOption('--endpoint <name>')
        .option('--variable-scalar <name=buckets...>', 'a histogram: upper bounds, or least/greatest/number of buckets')
        .option('--variable-enum <name=values...>', 'how often each of these values came')
        .option('--variable-value <name...>', 'the last value')
        .option('--log-freq <share>', 'of requests whose fields are looked at, 0 to 1'),
    load: async () => ({ run: (await import('./metrics-run.ts')).add }),
  });
  addVerb(metrics, {
    usage: 'remove',
    summary: 'count some of them, or all, no longer',
    examples: ['perch metrics remove --endpoint test_model_sklearn --variable x0'],
    options: (command) =>
      command.requiredOption('--endpoint <name>').option('--variable <name...>', 'without it: all of them'),
    load: async () => ({ run: (await import('./metrics-run.ts')).remove }),
  });
  addVerb(metrics, {
    usage: 'list',
    summary: 'what is counted',
    examples: ['perch metrics list'],
    options: (command) => command.option('--endpoint <name>', 'of this one alone'),
    load: async () => ({ run: (await import('./metrics-run.ts')).list }),
  });
}
