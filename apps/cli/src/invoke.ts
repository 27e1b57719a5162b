import { AppError, innerMessage, type SpecChange } from '@perch/contracts';
import { colorsFor } from './color.ts';
import { exitCodeOf } from './exit-code.ts';
import { type GlobalOptions, Invocation } from './invocation.ts';
import { renderShown, type Shown } from './output.ts';

/** Runs one verb: prints its result on stdout or its error on stderr, and returns the exit code. */
export async function invoke(
  global: GlobalOptions,
  run: (invocation: Invocation) => Promise<Shown | undefined>,
): Promise<number> {
  let invocation: Invocation | undefined;
  try {
    invocation = new Invocation(global);
    const shown = await run(invocation);
    if (shown && !shown.said) process.stdout.write(`${await renderShown(shown, invocation.output)}\n`);
    return shown?.exitCode ?? 0;
  } catch (error) {
    process.stderr.write(`${paint(errorText(error, global), invocation)}\n`);
    return exitCodeOf(error);
  } finally {
    await invocation?.close();
  }
}

/** The name of the program in red, where a person looks. */
function paint(text: string, invocation: Invocation | undefined): string {
  const { red } = colorsFor(process.stderr, invocation?.settings.color ?? false);
  return text.replace(/^perch:/, red('perch:'));
}

/** A person reads a sentence; a program that asked for JSON reads a JSON object. Both on stderr. */
export function errorText(error: unknown, global: GlobalOptions): string {
  const known = error instanceof AppError;
  const sentence = known ? error.message : `unexpected error: ${innerMessage(error)}`;
  if (global.output === 'json') {
    const { lost: _lost, ...details } = (known && error.details) || {};
    return JSON.stringify({ error: { code: known ? error.code : 'internal', message: sentence, details } });
  }
  const lines = [`perch: ${sentence}`, ...(known ? faultLines(error) : [])];
  if (global.debug && error instanceof Error) lines.push(error.stack ?? '');
  else if (!known) lines.push('Run it again with --debug to see where; please report it.');
  // Reasons may quote what others wrote: a terminal must not obey it.
  return lines.join('\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?');
}

interface Faults {
  errors?: { path: string; message: string }[];
  /** Of two writers: what each of them changed, since the generation that this one saw. */
  yours?: SpecChange[];
  theirs?: SpecChange[];
  changedBy?: string | null;
}

/** Each further field at fault, and what two writers wrote, on a line of its own. */
function faultLines(error: AppError): string[] {
  const { errors = [], yours = [], theirs = [], changedBy } = (error.details ?? {}) as Faults;
  const faults = errors.slice(3).map(({ path, message }) => `  ${path}: ${message}`);
  const side = (who: string, changes: SpecChange[]) =>
    changes.map(({ path, before, after }) => `  ${who}: ${path}: ${shown(before)} -> ${shown(after)}`);
  return [...faults, ...side(changedBy ?? 'they', theirs), ...side('you', yours)];
}

const shown = (value: unknown) => (value === undefined ? '(nothing)' : JSON.stringify(value));
