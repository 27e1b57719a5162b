import type { Version } from '@perch/contracts';
import { Admin } from '../support/admin.ts';
import type { FleetStack } from '../support/fleet-stack.ts';
import { scaleModel } from '../support/onnx.ts';
import type { VersionBook } from '../support/version-book.ts';

/** A version that the control plane said it had published. */
export interface Published {
  model: string;
  number: number;
  factor: number;
  askedMs: number;
  answeredMs: number;
}

/** Publishes versions one after the other, whatever fails meanwhile; a version whose answer was lost is simply followed by another. */
export class Publisher {
  readonly published: Published[] = [];
  attempts = 0;
  private factor = 1;
  private stopped = false;
  private running: Promise<void> | undefined;
  private readonly admin: Admin;

  constructor(
    stack: FleetStack,
    private readonly book: VersionBook,
    private readonly models: readonly string[],
    private readonly pauseMs: () => number,
    private readonly say: (words: string) => void,
  ) {
    this.admin = new Admin(stack, undefined, 8_000);
  }

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
  }

  /** One try. Throws what the control plane or the store said. */
  async publish(model: string): Promise<Published> {
    this.attempts += 1;
    this.factor += 1;
    const factor = this.factor;
    const bytes = scaleModel(factor);
    this.book.note(bytes, factor);
    const askedMs = Date.now();
    const { number }: Version = await this.admin.upload(model, { 'model.onnx': bytes });
    const one = { model, number, factor, askedMs, answeredMs: Date.now() };
    this.published.push(one);
    this.say(`published ${model} ${number} (factor ${factor})`);
    return one;
  }

  private async run(): Promise<void> {
    for (let turn = 0; !this.stopped; turn += 1) {
      await this.publish(this.models[turn % this.models.length]!).catch((error: Error) =>
        this.say(`not published: ${error.message.slice(0, 160)}`),
      );
      const until = Date.now() + this.pauseMs();
      while (!this.stopped && Date.now() < until) await new Promise((next) => setTimeout(next, 50));
    }
  }
}
