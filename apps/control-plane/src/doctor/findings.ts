import type { Finding } from '@perch/contracts';

/** A question and its answer, or why there is none. */
export type Answer<T> = { value: T } | { fault: string };

export const fine = (what: string, message: string): Finding => ({ severity: 'ok', what, message, whatToDo: null });
export const odd = (what: string, message: string, whatToDo: string): Finding => ({
  severity: 'warning',
  what,
  message,
  whatToDo,
});
export const wrong = (what: string, message: string, whatToDo: string): Finding => ({
  severity: 'error',
  what,
  message,
  whatToDo,
});

export const bytesText = (bytes: number): string =>
  bytes >= 1_000_000_000 ? `${(bytes / 1_000_000_000).toFixed(1)} GB` : `${Math.round(bytes / 1_000_000)} MB`;

/** `12 s`, `3 min`, `2 h`, `9 d`. */
export function spanText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 100) return `${seconds} s`;
  if (seconds < 6_000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
