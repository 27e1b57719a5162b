export const percent = (share: number): string => `${Number((share * 100).toFixed(1))} %`;

export function rateName(requestsPerMinute: number): string {
  if (requestsPerMinute < 60) return `${requestsPerMinute} a minute`;
  return `${(requestsPerMinute / 60).toLocaleString('en')} a second`;
}

export function time(ms: number | null): string {
  if (ms === null) return '–';
  const minutes = ms / 60_000;
  return minutes < 120
    ? `${Number(minutes.toFixed(minutes < 10 ? 1 : 0))} min`
    : `${Number((minutes / 60).toFixed(1))} h`;
}

export const count = (value: number | null): string => (value === null ? '–' : value.toLocaleString('en'));

/** A table in Markdown. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
