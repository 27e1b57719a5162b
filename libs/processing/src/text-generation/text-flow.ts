import type { TokenLogprob } from '@perch/contracts';
import type { TextDecoding } from '../contract.ts';
import { StopScan } from './stop-scan.ts';

export interface Flowing {
  text: string;
  logprobs: TokenLogprob[];
  /** A stop string ended it. */
  stopped: boolean;
}

/** Tokens in, text out: whole characters, nothing of a stop string, and each token's log-probability with its text. */
export class TextFlow {
  private readonly decoding: TextDecoding;
  private readonly scan: StopScan;
  /** Tokens whose text has not gone out, with where it begins. */
  private waiting: { start: number; logprob: TokenLogprob }[] = [];
  private decoded = 0;
  private sent = 0;

  constructor(decoding: TextDecoding, stops: readonly string[]) {
    this.decoding = decoding;
    this.scan = new StopScan(stops);
  }

  /** `mayStop`: whether stop strings end the text here. */
  push(id: number, logprob: TokenLogprob | undefined, mayStop: boolean): Flowing {
    if (logprob) this.waiting.push({ start: this.decoded, logprob });
    const { text, stopped } = this.through(this.decoding.push(id), mayStop);
    return { text, stopped, logprobs: this.take(({ start }) => start < this.sent) };
  }

  /** The end of the text, where no stop string ended it before. */
  finish(mayStop: boolean): Flowing {
    const { text, stopped } = this.through(this.decoding.finish(), mayStop);
    const rest = stopped ? '' : this.scan.rest();
    this.sent += rest.length;
    return { text: text + rest, stopped, logprobs: this.take(({ start }) => !stopped || start < this.sent) };
  }

  private through(piece: string, mayStop: boolean) {
    this.decoded += piece.length;
    const scanned = this.scan.push(piece, mayStop);
    this.sent += scanned.text.length;
    return scanned;
  }

  private take(isOut: (one: { start: number }) => boolean): TokenLogprob[] {
    const out = this.waiting.filter(isOut).map(({ logprob }) => logprob);
    if (out.length > 0) this.waiting = this.waiting.filter((one) => !isOut(one));
    return out;
  }
}
