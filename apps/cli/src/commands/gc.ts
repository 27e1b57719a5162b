import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch gc` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'gc',
    summary: 'remove what nobody needs any more: bytes, uploads, rows; with --dry-run only list it',
    examples: ['perch gc --dry-run', 'perch gc', 'perch gc --older-than 7d -o json'],
    options: (command) =>
      void command
        .option('--dry-run', 'only list what would go')
        .option('--older-than <time>', 'leave what became garbage within that time; 1h or more', '24h'),
    load: () => import('./gc-run.ts'),
  });
}
