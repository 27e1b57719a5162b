/** What was counted of the cells of one module. */
export class PoolStats {
  readonly label: string;
  readonly kind: 'worker' | 'process';
  calls = 0;
  starts = 0;
  /** Cells that ended before their time. */
  ends = 0;
  /** Calls that were tried again in another cell. */
  again = 0;
  /** Times that calls were refused, since cells ended in a loop. */
  refused = 0;

  constructor(label: string, kind: 'worker' | 'process') {
    this.label = label;
    this.kind = kind;
  }
}
