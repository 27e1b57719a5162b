/** What the words behind the program's name ask for. */
export type CommandLine =
  | { verb: 'run'; supervise: readonly string[] | undefined }
  | { verb: 'drain' }
  | { verb: 'refuse'; fault: string };

const usage = 'usage: agent [--supervise -- tritonserver …] | agent drain; all else is set by PERCH_… variables';

export function readCommandLine(words: readonly string[]): CommandLine {
  const [first, second, ...rest] = words;
  if (first === undefined) return { verb: 'run', supervise: undefined };
  if (first === 'drain' && second === undefined) return { verb: 'drain' };
  if (first !== '--supervise') return { verb: 'refuse', fault: `unknown argument ${first}; ${usage}` };
  if (second === '--' && rest.length > 0) return { verb: 'run', supervise: rest };
  return { verb: 'refuse', fault: `--supervise wants the server's command behind --; ${usage}` };
}
