import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch login` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'login [url]',
    summary: 'save an installation and a key as a context',
    examples: [
      'perch login https://perch.example.org                     # asks for the key',
      'perch login https://perch.example.org --name prod --router https://serve.example.org --key-file ./key',
    ],
    options: (command) =>
      command
        .option('--name <name>', 'name of the context (the host)')
        .option('--router <url>', 'where endpoint infer calls')
        .option('--key <key>', 'visible to others on this machine; better: --key-file, PERCH_API_KEY, or be asked')
        .option('--key-file <file>', 'holds the key; - reads it from the standard input')
        .option('--no-check', 'save it without asking the control plane'),
    load: () => import('./login-run.ts'),
  });
}
