import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch migrate` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'migrate',
    summary: 'bring a database to this version of Perch (control planes do it at start unless told not to)',
    examples: [
      'perch migrate --postgres postgres://perch:secret@db/perch',
      'perch migrate --down    # take the newest change back',
    ],
    options: (command) =>
      command
        .option('--postgres <url>', 'default: PERCH_DATABASE_URL')
        .option('--down', 'take back the newest change of the schema'),
    load: () => import('./migrate-run.ts'),
  });
}
