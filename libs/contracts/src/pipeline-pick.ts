/** One step into a value; `all`: into each element of a list. */
export type PickStep = { field: string } | { index: number } | 'all';

/** What a string that begins with `$` points at. */
export interface Pick {
  text: string;
  /** `body`, `item`, `index`, or the name of a node. */
  root: string;
  steps: readonly PickStep[];
  /** It ends in `?`: what is not there is null, and no fault. */
  optional: boolean;
}

/** Roots that are no node's result. */
export const pickRoots = ['body', 'item', 'index'] as const;

const grammar = 'wants $body, $item, $index or $ and a node’s name, then any of .field, ["any field"], [0], [-1], [*], and ? at its end where it may be absent'; // biome-ignore format: one sentence
const rootPattern = /^\$([A-Za-z][A-Za-z0-9_]*)/;
const stepPattern = /\.([A-Za-z_][A-Za-z0-9_-]*)|\[(-?[0-9]{1,9})\]|\[(\*)\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** Whether a string of a spec is a pick; `$$` at its beginning stands for one `$` of a text. */
export const isPick = (text: string): boolean => text.startsWith('$') && !text.startsWith('$$');

/** Reads a pick, or says in a sentence what is wrong with it. */
export function parsePick(text: string): Pick | string {
  const fault = `${JSON.stringify(text)} is no pick: ${grammar}; $$ begins a text with $`;
  const root = rootPattern.exec(text);
  if (!root) return fault;
  const optional = text.endsWith('?');
  const end = text.length - (optional ? 1 : 0);
  const steps: PickStep[] = [];
  stepPattern.lastIndex = root[0].length;
  while (stepPattern.lastIndex < end) {
    const step = stepPattern.exec(text);
    if (!step) return fault;
    const [, field, index, all, quoted] = step;
    if (field !== undefined) steps.push({ field });
    else if (index !== undefined) steps.push({ index: Number(index) });
    else if (all !== undefined) steps.push('all');
    else {
      const name = readText(quoted!);
      if (name === undefined) return fault;
      steps.push({ field: name });
    }
  }
  return { text, root: root[1]!, steps, optional };
}

function readText(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

/** Every pick of a value with where it stands; `path` is that of the value itself. */
export function picksIn(value: unknown, path: string): { path: string; pick: Pick | string }[] {
  if (typeof value === 'string') return isPick(value) ? [{ path, pick: parsePick(value) }] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => picksIn(one, path === '' ? key : `${path}.${key}`));
}
