import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch context …` */
export function define(program: Command): void {
  const context = program.command('context').description('Installations this computer knows.');
  const verbs = [
    ['list', 'all of them; * marks the current one', 'perch context list'],
    ['show [name]', 'one of them (its key is not shown)', 'perch context show prod'],
    ['use <name>', 'make it the current one', 'perch context use prod'],
    ['remove <name>', 'forget it', 'perch context remove prod'],
  ] as const;
  for (const [usage, summary, example] of verbs)
    addVerb(context, {
      usage,
      summary,
      examples: [example],
      load: async () => {
        const found = await import('./context-run.ts');
        return { run: found.runs[usage.split(' ')[0] as keyof typeof found.runs] };
      },
    });
}
