import { Command, CommanderError, Option } from 'commander';
import { nouns } from './command.table.ts';
import { wrongUse } from './exit-code.ts';

const examples = `
Examples:
  $ perch up                                              everything on this machine, one command
  $ perch model import nlp/minilm ./minilm --publish      a Hugging Face folder with an ONNX file
  $ perch endpoint add text/minilm --model nlp/minilm --processing text-embedding --wait
  $ perch endpoint infer text/minilm --json '{"text": "good morning"}'
  $ perch doctor

Settings from the environment: PERCH_URL, PERCH_API_KEY, PERCH_ROUTER_URL, PERCH_CONTEXT, PERCH_CONFIG_DIR, NO_COLOR.
Exit codes: 0 done, 1 failed, 2 wrong use, 3 not found, 4 conflict, 5 not allowed, 6 unreachable, 7 timed out.`;

/** Options before the first word that take a value. */
const withValue = new Set(['--id', '--context', '-o', '--output']);

/** The first word of a command line that is no option: the noun. */
export function nounOf(args: readonly string[]): string | undefined {
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] as string;
    if (arg === 'help') continue;
    if (!arg.startsWith('-')) return arg;
    if (withValue.has(arg)) at += 1;
  }
  return undefined;
}

/** `--wait 30s` and `--wait=30s` both name a time; what else follows `--wait` is not its value. */
export const settleWait = (args: readonly string[]): string[] =>
  args.flatMap((arg, at) => {
    if (arg !== '--wait' || /^\d+(\.\d+)?(ms|s|m|h)?$/.test(args[at + 1] ?? '')) return [arg];
    return args[at + 1] === undefined || args[at + 1]?.startsWith('-') ? [arg] : ['--wait='];
  });

/** The whole command tree of `loaded` nouns; the others are names and one line each. */
export async function buildProgram(wanted: (noun: string) => boolean): Promise<Command> {
  const program = new Command('perch')
    .description('Model serving on a fleet of Triton servers: upload a version, publish it, it is served.')
    .usage('[options] <command>')
    .enablePositionalOptions()
    .option('-o, --output <format>', 'table, json or yaml')
    .option('--context <name>', 'the installation to talk to (perch context list)')
    .addOption(new Option('--id <name>', "ClearML's word for --context").hideHelp())
    .addOption(new Option('--yes', 'answer yes to every question').hideHelp())
    .addOption(new Option('--debug', 'show the stack of an unexpected error').hideHelp())
    .option('-V, --version', 'the version of this program')
    .addHelpText('after', examples)
    .helpCommand('help [command]', 'help for a command')
    .exitOverride();
  for (const noun of nouns) {
    program.commandsGroup(noun.group);
    if (wanted(noun.name)) (await noun.load()).define(program, noun.name);
    else
      program
        .command(noun.name, { hidden: noun.hidden === true })
        .summary(noun.summary)
        .description(noun.summary);
  }
  return program;
}

async function printVersion(): Promise<void> {
  const { readFile } = await import('node:fs/promises');
  const file = await readFile(new URL('../package.json', import.meta.url), 'utf8');
  process.stdout.write(`perch ${(JSON.parse(file) as { version: string }).version}\n`);
}

/** Runs one command line and returns its exit code. */
export async function runCli(args: readonly string[]): Promise<number> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0); // whoever read the output has seen enough
  });
  const noun = nounOf(args);
  if (noun === undefined && (args.includes('--version') || args.includes('-V'))) {
    await printVersion();
    return 0;
  }
  if (noun !== undefined && !nouns.some(({ name }) => name === noun)) return unknownNoun(noun);
  const program = await buildProgram((name) => name === noun);
  if (noun === undefined) {
    program.outputHelp({
      error: args.length > 0 && !args.some((arg) => arg === '--help' || arg === '-h' || arg === 'help'),
    });
    return args.length === 0 || args.some((arg) => ['--help', '-h', 'help'].includes(arg)) ? 0 : wrongUse;
  }
  inheritOverride(program);
  try {
    process.exitCode = 0;
    await program.parseAsync(settleWait(args), { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : wrongUse;
    throw error;
  }
}

function inheritOverride(command: Command): void {
  for (const child of command.commands) {
    child.exitOverride().showHelpAfterError('(add --help for what is wanted)');
    inheritOverride(child);
  }
}

function unknownNoun(noun: string): number {
  const near = nouns
    .filter(({ name }) => name.startsWith(noun.slice(0, 2)) && !name.startsWith('_'))
    .map(({ name }) => name);
  const hint = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : '; perch --help shows them all';
  process.stderr.write(`perch: there is no command ${noun}${hint}\n`);
  return wrongUse;
}
