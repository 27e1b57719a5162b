import { Injectable } from '@nestjs/common';

/** Who wants the server's work done elsewhere: a program that ends, or a server that has to be restarted. */
export type LeavingCause = 'stopping' | 'stuck';

/** Whether this server asks to be drained; told with each report. */
@Injectable()
export class LeavingService {
  private readonly causes = new Map<LeavingCause, string>();
  private readonly listeners: (() => void)[] = [];

  /** Undefined: it stays. */
  get reason(): string | undefined {
    return this.causes.get('stopping') ?? this.causes.get('stuck');
  }

  ask(cause: LeavingCause, reason: string): void {
    this.causes.set(cause, reason);
    this.tell();
  }

  withdraw(cause: LeavingCause): void {
    if (this.causes.delete(cause)) this.tell();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
