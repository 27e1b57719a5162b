import type { TableServer } from '@perch/contracts';
import { pickServer } from '@perch/routing';
import type { ServerVerdict } from './retry.decide.ts';

/** Requests in hand at one server, whatever the model. */
export interface ServerLoad {
  outstanding: number;
}

const failuresToEject = 5;
const ejectFirstMs = 1_000;
const ejectMaxMs = 30_000;
/** A server that is down is tried again this soon, so that requests waiting for it lose little once it is back. */
const downFirstMs = 25;
const downMaxMs = 200;
/** A probe that takes longer keeps nobody waiting: the server may never answer it. */
const probeMs = 1_000;

/** One Triton model on one server, as this process sees it. Out of use for a while after failures; then one request probes it. */
export class Upstream {
  readonly server: TableServer;
  /** What this server calls the model, and the version to ask it for; empty: the one it has. */
  readonly model: string;
  readonly modelVersion: string;
  readonly load: ServerLoad;
  /** Out because it failed (may still be the last resort) or because it is down (would fail for sure). */
  out: 'no' | 'ejected' | 'down' = 'no';
  private outUntil = 0;
  private outMs = 0;
  private failures = 0;
  /** Until then one request finds out for all whether it is back; 0: none does. */
  private probeUntil = 0;

  constructor(server: TableServer, model: string, modelVersion: string, load: ServerLoad) {
    this.server = server;
    this.model = model;
    this.modelVersion = modelVersion;
    this.load = load;
  }

  isOpen(now: number): boolean {
    return this.out === 'no' || (now >= this.outUntil && now >= this.probeUntil);
  }

  begin(now: number): void {
    this.load.outstanding += 1;
    if (this.out !== 'no') this.probeUntil = now + probeMs;
  }

  /** Ends what `begin` began. True when this brought the server back into use. */
  end(verdict: ServerVerdict | 'unknown', now: number): boolean {
    this.load.outstanding -= 1;
    this.probeUntil = 0;
    switch (verdict) {
      case 'unknown':
        return false;
      case 'fine': {
        const back = this.out !== 'no';
        this.out = 'no';
        this.failures = 0;
        this.outMs = 0;
        return back;
      }
      case 'down':
        this.rest('down', now, downFirstMs, downMaxMs);
        return false;
      case 'failed':
        this.failures += 1;
        if (this.failures >= failuresToEject) this.rest('ejected', now, ejectFirstMs, ejectMaxMs);
        return false;
    }
  }

  /** Several requests fail together; only a failure after the rest began makes it longer. */
  private rest(out: 'ejected' | 'down', now: number, firstMs: number, maxMs: number): void {
    if (this.out === out && now < this.outUntil) return;
    this.outMs = this.out === out ? Math.min(maxMs, this.outMs * 2) : firstMs;
    this.out = out;
    this.outUntil = now + this.outMs;
  }
}

const outstandingAt = (upstream: Upstream): number => upstream.load.outstanding;

/**
 * The server for one try: fewest outstanding of two random open ones. With none open the ejected ones serve all the same
 * (the last one is never ejected), but one that is down does not: then the request waits.
 */
export function pickUpstream(
  upstreams: readonly Upstream[],
  tried: ReadonlySet<Upstream> | undefined,
  now: number,
  random: () => number,
): Upstream | undefined {
  let open = upstreams;
  for (let i = 0; i < upstreams.length; i += 1)
    if (!upstreams[i]!.isOpen(now) || tried?.has(upstreams[i]!)) {
      open = upstreams.filter((one) => one.isOpen(now) && !tried?.has(one));
      break;
    }
  const picked = pickServer(open, outstandingAt, random);
  if (picked) return picked;
  const ejected = upstreams.filter((one) => one.out === 'ejected' && !tried?.has(one));
  return pickServer(ejected, outstandingAt, random);
}
