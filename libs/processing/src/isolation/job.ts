import { AppError } from '@perch/contracts/plain';
import type { CallContext } from '../contract.ts';
import type { BatchWriter } from './batch.ts';
import type { Cell } from './cell.ts';
import type { CallHook, Carried, ToCell } from './wire.ts';

/** A request's way through a module, seen from the router: what `carry` of an isolated module is. */
export interface Visit {
  readonly binding: number;
  readonly body: Buffer;
  readonly contentType: string | undefined;
  /** Where its state and carry are; another cell runs `preprocess` again when this one is gone. */
  cell: Cell | undefined;
  /** Its number in that cell. */
  id: number;
}

let lastVisit = 0;
/** Unlike any other of this process. */
export const nextVisitId = (): number => {
  lastVisit += 1;
  return lastVisit;
};

export interface JobParts {
  hook: CallHook;
  visit: Visit;
  ctx: CallContext;
  value(out: BatchWriter<ToCell>): Carried;
}

/** One hook of one request, until it is answered. */
export class Job {
  readonly hook: CallHook;
  readonly visit: Visit;
  readonly ctx: CallContext;
  readonly value: (out: BatchWriter<ToCell>) => Carried;
  readonly startedAtMs = performance.now();
  readonly limitMs: number;
  readonly answer: Promise<unknown>;
  /** Cells that ended after they had begun it. */
  tries = 0;
  /** Times that `preprocess` was run again for it. */
  revivals = 0;
  id = 0;
  settled = false;
  /** The router's own errors that went into the module; they come back as what they were. */
  readonly errors: unknown[] = [];
  private accept!: (value: unknown) => void;
  private refuse!: (error: unknown) => void;

  constructor({ hook, visit, ctx, value }: JobParts) {
    this.hook = hook;
    this.visit = visit;
    this.ctx = ctx;
    this.value = value;
    this.limitMs = ctx.remainingMs();
    this.answer = new Promise((resolve, reject) => {
      this.accept = resolve;
      this.refuse = reject;
    });
  }

  get deadlineAtMs(): number {
    return this.startedAtMs + this.limitMs;
  }

  resolve(value: unknown): void {
    this.settled = true;
    this.accept(value);
  }

  reject(error: unknown): void {
    this.settled = true;
    this.refuse(error);
  }

  /** What a client whose time has passed is told. */
  timeout(label: string, what: string): AppError {
    return new AppError('timeout', `module ${label}: ${this.hook} ${what} ${Math.round(this.limitMs)} ms`);
  }
}
