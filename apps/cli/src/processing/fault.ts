import { AppError } from '@perch/contracts';

/** What is wrong at one place of a module's code; line and column begin at 1. */
export interface CodeFault {
  /** Relative to the module's folder. */
  file: string;
  line: number;
  column: number;
  message: string;
  /** The line of code. */
  code: string;
}

const mostShown = 10;

/** As compilers write it: file:line:column, the line of code, and a mark below the place. */
export function faultText({ file, line, column, message, code }: CodeFault): string {
  const cut = code.length - code.trimStart().length;
  const mark = `${' '.repeat(Math.max(0, column - 1 - cut))}^`;
  return [`  ${file}:${line}:${column}: ${message}`, `    ${code.trim().slice(0, 160)}`, `    ${mark}`].join('\n');
}

/** One error for all places; `what` begins the sentence. */
export function faultsError(what: string, faults: readonly CodeFault[]): AppError {
  const shown = faults.slice(0, mostShown).map(faultText);
  if (faults.length > mostShown) shown.push(`  … and ${faults.length - mostShown} more`);
  const errors = faults.map(({ file, line, column, message }) => ({ path: `${file}:${line}:${column}`, message }));
  return new AppError('invalid', [`${what} (${faults.length}):`, ...shown].join('\n'), {
    details: { faults: errors },
  });
}
