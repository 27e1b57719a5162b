import type { Command } from 'commander';

/** `perch __complete -- words…`: what may stand where the last word begins, a line each. */
export function define(program: Command): void {
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .action(async (words: string[]) => {
      const { candidates } = await import('../completion.source.ts');
      process.stdout.write((await candidates(words)).map((word) => `${word}\n`).join(''));
    });
}
