import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';

const files = (command: Command) =>
  command.requiredOption(
    '-f, --file <file>',
    'YAML or JSON, one or several documents; - reads the standard input; may be repeated',
    many,
  );

/** `perch apply -f` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'apply',
    summary: 'make endpoints, splits and pipelines as files say: add what is missing, change what differs',
    examples: ['perch apply -f endpoints.yaml --wait', 'cat endpoint.json | perch apply -f -'],
    options: (command) => void files(command).option('--dry-run', 'only say what would change'),
    waits: '60s',
    load: async () => ({ run: (await import('./apply-run.ts')).apply }),
  });
}
