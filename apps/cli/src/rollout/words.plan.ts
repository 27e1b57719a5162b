import { isOver, type Rollout } from '@perch/contracts';
import { plainText } from '../output.ts';
import type { Glyphs } from './glyphs.ts';

export type Color = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';
export type Paint = Record<Color, (text: string) => string>;

export const labelWidth = 10;
export const label = (text: string): string => text.padEnd(labelWidth);

/** Words of others on one line, with nothing in them that a terminal would obey. */
export const oneLine = (text: string): string => plainText(text).replace(/[\t\n]/g, ' ');

export const clip = (text: string, width: number, { more }: Pick<Glyphs, 'more'>): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - more.length)).trimEnd()}${more}`.slice(0, width);

/** Words in lines of at most `width`; a longer word is cut. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of oneLine(text).split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
    line = (line === '' ? word : `${line} ${word}`).slice(0, width);
  }
  return line === '' ? lines : [...lines, line];
}

const endWords = { promoted: 'promoted', rolled_back: 'rolled back', aborted: 'aborted' } as const;

/** The state with what stands beside it: `shifting, held by ann`. */
export function standing({ state, run, heldBy }: Pick<Rollout, 'state' | 'run' | 'heldBy'>): string {
  if (isOver(state)) return endWords[state as keyof typeof endWords];
  if (run === 'held') return `${state}, held${heldBy ? ` by ${oneLine(heldBy)}` : ''}`;
  return run === 'waiting' ? `${state}, waiting` : state;
}

export function stateColor({ state, run }: Pick<Rollout, 'state' | 'run'>): Color {
  if (state === 'promoted') return 'green';
  if (state === 'rolled_back' || state === 'aborted') return 'red';
  return run === 'running' ? 'cyan' : 'yellow';
}
