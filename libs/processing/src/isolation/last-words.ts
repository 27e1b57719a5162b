import type { Inside } from './inside.ts';

/**
 * Whatever ends this cell out of turn is said before it ends. `flush`: calls back when what was said is on its way.
 * Returns how to leave in silence.
 */
export function leaveBy(inside: Inside, flush: (then: () => void) => void): (code: number) => void {
  const leave = process.exit.bind(process) as (code: number) => void;
  const say = (words: string) => {
    inside.die(words);
    flush(() => leave(1));
  };
  const ended = (what: string) => (error: unknown) =>
    say(`${what} (${(error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, 300)})`);
  process.on('uncaughtException', ended('an error that nobody caught'));
  process.on('unhandledRejection', ended('a rejected promise that nobody waited for'));
  process.exit = ((code?: number) => {
    say(`process.exit(${code ?? ''})`);
    // nothing that follows the call is to run
    throw new Error('the module has called process.exit');
  }) as typeof process.exit;
  // a mistake in one module should not end others: no boundary in a thread, which shares the process
  process.kill = () => {
    throw new Error('process.kill is not for modules');
  };
  return leave;
}
