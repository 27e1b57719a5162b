import { expect } from 'vitest';
import { Admin } from '../support/admin.ts';
import { CheckedLoad, type CheckedReply } from '../support/checked-load.ts';
import type { FleetStack } from '../support/fleet-stack.ts';
import { scaleModel } from '../support/onnx.ts';
import { VersionBook } from '../support/version-book.ts';

/** A fleet with one endpoint of `scaleModel` versions on it, under checked load through all its routers. */
export class FleetUnderLoad {
  readonly admin: Admin;
  readonly book = new VersionBook();
  readonly load: CheckedLoad;
  private factor = 1;

  constructor(
    readonly stack: FleetStack,
    readonly endpoint: string,
    perSecond: number,
  ) {
    this.admin = new Admin(stack);
    const routers = stack.routers.map(({ name, address }) => ({ name, address }));
    const endpoints = [{ name: endpoint, share: 1 }];
    this.load = new CheckedLoad({ routers, key: stack.adminKey, endpoints, perSecond });
  }

  /** Adds the endpoint with a first version, waits until it is served, and starts the load. */
  async begin(fleet: { replicas: number; minReplicas?: number }, timeoutMs = 60_000): Promise<void> {
    const [project, name] = this.endpoint.split('/') as [string, string];
    await this.publish();
    const model = { project, name, maxVersions: 2 };
    await this.admin.addEndpoint({ name: this.endpoint, model, fleet, limits: { timeoutMs: 30_000 } });
    for (const router of this.stack.routers) {
      const admin = new Admin({ ...this.target, router });
      await admin.untilServed(this.endpoint, 1, { x: [[1, 2, 3, 4]] }, timeoutMs);
    }
    this.load.start();
  }

  private get target() {
    const { adminKey, controlPlane } = this.stack;
    return { adminKey, controlPlane, logs: () => this.stack.logs() };
  }

  /** The next version; it multiplies by a factor that no other one has. */
  async publish(): Promise<number> {
    this.factor += 1;
    const bytes = scaleModel(this.factor);
    this.book.note(bytes, this.factor);
    return (await this.admin.upload(this.endpoint, { 'model.onnx': bytes })).number;
  }

  /** Waits until every router answers with the version, as seen by the load itself. */
  async untilAnswered(version: number, timeoutMs = 60_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    const last = (name: string) => this.load.replies.findLast(({ router }) => router === name)?.version;
    while (!this.stack.routers.every(({ name }) => last(name) === version)) {
      if (Date.now() > deadline)
        throw new Error(`version ${version} is not served after ${timeoutMs} ms\n${await this.stack.logs()}`);
      await new Promise((next) => setTimeout(next, 20));
    }
  }

  /** Ends the load; no answer may be missing or wrong. */
  async settle(): Promise<CheckedReply[]> {
    const replies = await this.load.stop();
    await this.book.read(this.stack.postgres);
    const failed = replies.filter(({ status }) => status !== 200);
    const wrong = replies.filter(({ status }) => status === 200).flatMap((reply) => this.book.fault(reply) ?? []);
    expect(failed.slice(0, 3), failed.length > 0 ? await this.stack.logs(40) : '').toEqual([]);
    expect(wrong.slice(0, 3)).toEqual([]);
    expect(this.book.changed).toEqual([]);
    return replies;
  }
}
