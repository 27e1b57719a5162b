/** Text on its way to the client, searched for stop strings: what may be the beginning of one is held back. */
export class StopScan {
  private readonly stops: readonly string[];
  private held = '';

  constructor(stops: readonly string[]) {
    this.stops = stops;
  }

  /** What may go out now; `stopped`: a stop string was found behind it. Without `active` nothing stops and all goes out. */
  push(text: string, active: boolean): { text: string; stopped: boolean } {
    const pending = this.held + text;
    this.held = '';
    if (!active) return { text: pending, stopped: false };
    const found = this.stops.map((stop) => pending.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) return { text: pending.slice(0, Math.min(...found)), stopped: true };
    const kept = this.beginning(pending);
    this.held = pending.slice(pending.length - kept);
    return { text: pending.slice(0, pending.length - kept), stopped: false };
  }

  /** What was held back: no stop string came of it. */
  rest(): string {
    const { held } = this;
    this.held = '';
    return held;
  }

  /** Length of the longest end of the text with which a stop string begins. */
  private beginning(text: string): number {
    let longest = 0;
    for (const stop of this.stops)
      for (let size = Math.min(stop.length - 1, text.length); size > longest; size--)
        if (text.endsWith(stop.slice(0, size))) longest = size;
    return longest;
  }
}
