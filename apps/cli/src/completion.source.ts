import type { Command } from 'commander';
import { readSettings } from './cli.config.ts';
import { ContextStore } from './context.store.ts';
import { buildProgram, nounOf } from './program.ts';

const visible = (command: Command): boolean => !(command as Command & { _hidden?: boolean })._hidden;

/** Words that fit at the end of the line so far; its last word may be begun or empty. */
export async function candidates(words: readonly string[]): Promise<string[]> {
  const begun = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  if (['--context', '--id'].includes(before.at(-1) ?? ''))
    return startingWith(Object.keys((await new ContextStore(readSettings().configDir).read()).contexts), begun);
  if (['-o', '--output'].includes(before.at(-1) ?? '')) return startingWith(['table', 'json', 'yaml'], begun);
  const noun = nounOf(before);
  const program = await buildProgram((name) => name === noun);
  const command = deepest(program, before);
  const names = command.commands.filter(visible).map((child) => child.name());
  const options = command.options.filter((option) => !option.hidden).map((option) => option.long ?? option.short ?? '');
  if (begun.startsWith('-')) return startingWith([...options, '--help'], begun);
  return startingWith(names.length > 0 ? names : await namesOf(command, before), begun);
}

/** Names that the installation knows, where the first argument of a verb stands. */
async function namesOf(command: Command, before: readonly string[]): Promise<string[]> {
  if (before.at(-1) !== command.name() || !command.parent) return [];
  const { namesFor } = await import('./completion-names.source.ts');
  const at = before.indexOf('--context');
  return namesFor(`${command.parent.name()} ${command.name()}`, at < 0 ? undefined : before[at + 1]);
}

const startingWith = (words: readonly string[], begun: string) =>
  words.filter((word) => word !== '' && word.startsWith(begun)).sort();

function deepest(program: Command, words: readonly string[]): Command {
  let command = program;
  for (const word of words) {
    const next = command.commands.find((child) => child.name() === word);
    if (next) command = next;
  }
  return command;
}
