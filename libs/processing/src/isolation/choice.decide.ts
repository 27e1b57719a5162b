/** A cell as the choice sees it. */
export interface CellLoad {
  /** Calls in it. */
  calls: number;
  /** For how long one hook has run without a pause; 0: none does. */
  stuckMs: number;
  /** Share of the last while in which it was busy. */
  busyShare: number;
}

const stuckAfterMs = 50;
const busyAbove = 0.8;

/** Place of the cell that takes the next call: the one with the fewest, those that stand still last. -1: there is none. */
export function chooseCell(cells: readonly CellLoad[]): number {
  let best = -1;
  for (let place = 0; place < cells.length; place += 1) {
    const cell = cells[place]!;
    const other = cells[best];
    if (!other || rank(cell) < rank(other)) best = place;
  }
  return best;
}

const rank = ({ calls, stuckMs }: CellLoad): number => calls + (stuckMs > stuckAfterMs ? 1e6 : 0);

/** One more cell is wanted: all there are have too much to do, or stand still, and there may be more. */
export const wantsMore = (cells: readonly CellLoad[], most: number): boolean =>
  cells.length > 0 &&
  cells.length < most &&
  cells.every(({ stuckMs, busyShare }) => stuckMs > stuckAfterMs || busyShare > busyAbove);
