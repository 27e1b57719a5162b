import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch audit` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'audit',
    summary: 'who changed what; --verify proves that no row was changed or removed',
    examples: ['perch audit --limit 20', 'perch audit --subject text/minilm', 'perch audit --verify'],
    options: (command) =>
      command
        .option('--verify', 'check the chain of hashes')
        .option('--subject <name>', 'only rows about this')
        .option('--limit <n>', 'newest rows', '50'),
    load: () => import('./audit-run.ts'),
  });
}
