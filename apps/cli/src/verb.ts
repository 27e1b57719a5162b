import { type Command, Option } from 'commander';
import type { GlobalOptions } from './invocation.ts';
import type { Shown } from './output.ts';

/** Options as commander read them; each verb knows which ones it declared. */
// biome-ignore lint/suspicious/noExplicitAny: commander's own type
export type Options = Record<string, any>;

export type Run = (
  invocation: import('./invocation.ts').Invocation,
  args: (string | undefined)[],
  options: Options,
) => Promise<Shown | undefined>;

export interface Verb {
  /** Name and arguments, as commander writes them: `show <model> [version]`. */
  usage: string;
  summary: string;
  examples: readonly string[];
  options?: (command: Command) => void;
  /** Default time of `--wait`; left out: nothing converges here. */
  waits?: string;
  /** Loads what the verb needs; nothing of it is read for `--help`. */
  load: () => Promise<{ run: Run }>;
}

const globals = [
  ['-o, --output <format>', 'table, json or yaml'],
  ['--context <name>', 'the installation to talk to (perch context list)'],
  ['--debug', 'show the stack of an unexpected error'],
] as const;

export function addGlobals(command: Command): Command {
  command.optionsGroup('Options of every command:');
  for (const [flags, text] of globals) command.addOption(new Option(flags, text));
  return command;
}

const waitOption = (byDefault: string) =>
  new Option('--wait [time]', `wait until it has come about, at most so long (${byDefault})`)
    .preset(byDefault)
    .argParser((text) => text || byDefault);

/** Adds one verb below a noun (or below the program itself). */
export function addVerb(parent: Command, verb: Verb): Command {
  const command = parent.command(verb.usage).description(verb.summary).summary(verb.summary);
  verb.options?.(command);
  addGlobals(command);
  if (verb.waits) command.addOption(waitOption(verb.waits));
  if (verb.examples.length > 0)
    command.addHelpText('after', `\nExamples:\n${verb.examples.map((line) => `  $ ${line}`).join('\n')}`);
  return command.action(async (...received: unknown[]) => {
    const args = received.slice(0, -2) as (string | undefined)[];
    const { invoke } = await import('./invoke.ts');
    const all = command.optsWithGlobals() as Options & GlobalOptions;
    process.exitCode = await invoke(all, async (invocation) => (await verb.load()).run(invocation, args, all));
  });
}

export const many = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value];
