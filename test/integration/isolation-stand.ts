import type { BoundModule, BoundProcessing, Isolation, Route } from '@perch/contracts';
import { route, target } from '../../bench/control-stub.mjs';
import { echo, moduleOf } from '../../bench/modules.mjs';
import { RouterStand } from './router-stand.ts';
import { ScriptedServer } from './scripted-server.ts';

/** A router with a model server that echoes, and modules written by hand. */
export class IsolationStand {
  stand!: RouterStand;
  server!: ScriptedServer;
  private readonly endpoints: Record<string, Route> = {};
  private number = 0;

  static async start(env: Record<string, string> = {}): Promise<IsolationStand> {
    const made = new IsolationStand();
    made.server = await new ScriptedServer().start();
    made.server.act = echo;
    made.stand = await RouterStand.start(env);
    return made;
  }

  async stop(): Promise<void> {
    await this.stand?.stop();
    await this.server?.close();
  }

  /** `hooks`: as in the object given to `defineProcessing`. */
  module(name: string, hooks: string): BoundModule {
    this.number += 1;
    return moduleOf(this.stand.control, name, this.number, hooks);
  }

  /** An endpoint with this module; its deployment is named by the module's digest, so that another module is another one. */
  set(
    endpoint: string,
    module: BoundModule | undefined,
    isolation: Isolation = 'worker',
    fields: Partial<Route> = {},
  ): void {
    const processing: BoundProcessing = module
      ? { module, isolation, options: {} }
      : { builtin: 'passthrough', options: {} };
    const one = target({
      deployment: `d-${endpoint}-${module?.digest.slice(0, 12) ?? 'builtin'}-${isolation}`,
      tritonModel: 'm',
      servers: ['a'],
      maxBatchSize: 8,
      inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, -1] }],
      outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, -1] }],
      processing,
    });
    this.endpoints[endpoint] = route([one], fields);
  }

  remove(endpoint: string): void {
    delete this.endpoints[endpoint];
  }

  /** Until it answers this with 200. */
  async until(endpoint: string, body: unknown, limitMs = 50_000): Promise<void> {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const answer = await this.ask(endpoint, body);
      if (answer.status === 200) return;
      if (Date.now() > deadline) throw new Error(`${endpoint} does not answer: ${answer.status} ${answer.text}`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  publish(): Promise<number> {
    return this.stand.publish({ servers: { a: this.server.at }, endpoints: this.endpoints });
  }

  ask(endpoint: string, body: unknown, headers: Record<string, string> = {}) {
    return this.stand.post(`/serve/${endpoint}`, body, headers);
  }
}
