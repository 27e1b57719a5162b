import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';

/** `perch diff -f` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'diff',
    summary: 'show what apply would change, and what follows from it; exits 1 when something would',
    examples: ['perch diff -f endpoints.yaml'],
    options: (command) => command.requiredOption('-f, --file <file>', 'YAML or JSON; may be repeated', many),
    load: async () => ({ run: (await import('./apply-run.ts')).diff }),
  });
}
