import { TritonFault } from '../wire/index.ts';

/**
 * How far a call came before its connection failed: `nothing` of it was sent (surely not run), it was `sent` but nothing
 * of the reply was seen (it may have run), or the `reply` had begun.
 */
export type Reached = 'nothing' | 'sent' | 'reply';

export class ConnectionFault extends TritonFault {
  readonly reached: Reached;

  constructor(reached: Reached, tried: string, text: string, cause?: unknown) {
    super('connection', tried, text, cause);
    this.reached = reached;
  }
}
