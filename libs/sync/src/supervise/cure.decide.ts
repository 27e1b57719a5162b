/** What there is to decide on while a model is stuck in LOADING. */
export interface StuckServer {
  /** Names, in any order; none: nothing is stuck. */
  stuck: readonly string[];
  /** Since when a drain was asked for because of them; undefined: not yet. */
  askedAtMs: number | undefined;
  /** Models that others are served by. */
  serving: number;
  /** Nothing is desired of this server any more: its work is done elsewhere. */
  drained: boolean;
  nowMs: number;
  /** How long a drain may take. */
  patienceMs: number;
}

/**
 * The way out of a load that Triton does not come back from: nothing more is loaded, the server's work is asked for
 * elsewhere, and it is restarted once it is done there, at once when there is none, or when nobody took it in time.
 */
export function decideCure(server: StuckServer): 'none' | 'ask' | 'wait' | 'restart' {
  if (server.stuck.length === 0) return 'none';
  if (server.serving === 0 || server.drained) return 'restart';
  if (server.askedAtMs === undefined) return 'ask';
  return server.nowMs - server.askedAtMs >= server.patienceMs ? 'restart' : 'wait';
}
