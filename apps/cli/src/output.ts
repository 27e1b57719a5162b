import Table from 'cli-table3';

export const outputs = ['table', 'json', 'yaml'] as const;
export type Output = (typeof outputs)[number];

/** What a command hands back: the value for programs, and its form for people. */
export interface Shown {
  value: unknown;
  text: () => string;
  /** The command did its work but found faults (diff, doctor, audit --verify). */
  exitCode?: number;
  /** It was written while it ran: nothing is left to print. */
  said?: boolean;
}

export type Column<T> = readonly [title: string, cell: (item: T) => unknown];

const cellText = (cell: unknown): string => {
  if (cell === undefined || cell === null || cell === '') return '-';
  if (Array.isArray(cell)) return cell.length > 0 ? cell.map(cellText).join(', ') : '-';
  if (typeof cell === 'object') return JSON.stringify(cell);
  return plainText(String(cell));
};

/** Names and reasons come from elsewhere: a terminal must not obey them. */
export const plainText = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?');

const bare = {
  chars: {
    top: '', 'top-mid': '', 'top-left': '', 'top-right': '',
    bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '',
    left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ',
  }, // biome-ignore format: the frame's parts in the order of their places
  style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
};

export function tableText<T>(items: readonly T[], columns: readonly Column<T>[]): string {
  const table = new Table({ ...bare, head: columns.map(([title]) => title.toUpperCase()) });
  for (const item of items) table.push(columns.map(([, cell]) => cellText(cell(item))));
  return trimLines(table.toString());
}

const trimLines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');

/** A list; `none` is the sentence for an empty one. */
export const shownList = <T>(items: readonly T[], columns: readonly Column<T>[], none: string): Shown => ({
  value: items,
  text: () => (items.length === 0 ? none : tableText(items, columns)),
});

/** Name and value, a line each; undefined values are left out. */
export function factsText(facts: readonly (readonly [name: string, value: unknown])[]): string {
  const known = facts.filter(([, value]) => value !== undefined);
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${cellText(value)}`).join('\n');
}

export const shownFacts = (value: unknown, facts: readonly (readonly [string, unknown])[]): Shown => ({
  value,
  text: () => factsText(facts),
});

export const said = (value: unknown, sentence: string): Shown => ({ value, text: () => sentence });

/** What goes to stdout. YAML is loaded only when asked for. */
export async function renderShown(shown: Shown, output: Output): Promise<string> {
  switch (output) {
    case 'json':
      return JSON.stringify(shown.value, null, 2);
    case 'yaml': {
      const { stringify } = await import('yaml');
      return stringify(shown.value, { lineWidth: 0 }).trimEnd();
    }
    case 'table':
      return shown.text();
  }
}
