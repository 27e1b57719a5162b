import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DesiredModel, ObservedState } from '@perch/contracts';
import { Metrics, silentLogger } from '@perch/platform';
import { Agent } from 'undici';
import { BlobCache } from './blobs/blob.cache.ts';
import { BlobClient, type BlobClientSettings } from './blobs/blob.client.ts';
import { UrlBook } from './blobs/blob.source.ts';
import { RepositoryStore } from './repository.store.ts';
import type { WarmUp } from './sync.apply.ts';
import { SyncReconciler } from './sync.reconcile.ts';
import { createSyncMetrics } from './sync-metrics.ts';
import type { SyncParts, SyncSettings } from './sync-parts.ts';
import { FakeTriton } from './triton.fake.ts';
import { TritonSource } from './triton.source.ts';
import { FakeBlobStore } from './world.fake.ts';

/** One server's disk, its fake Triton and its store; agents (reconcilers) come and go on it. */
export class Bench {
  readonly store = new FakeBlobStore();
  readonly dispatcher = new Agent();
  folder = '';
  triton!: FakeTriton;
  cache!: BlobCache;
  agent!: SyncReconciler;
  models: Record<string, DesiredModel> = {};
  removalsAllowed = true;
  warmUp: WarmUp = { warm: async () => ({ outcome: 'ok' }), prove: async () => undefined };
  trace: ((model: string, step: string) => void) | undefined;
  freeBytes: (() => Promise<number>) | undefined;
  settings: Partial<SyncSettings> = {};
  extra: Partial<SyncParts> = {};
  download: Partial<BlobClientSettings> = {};

  static async open(): Promise<Bench> {
    const bench = new Bench();
    bench.folder = await mkdtemp(join(tmpdir(), 'perch-sync-'));
    await bench.store.start();
    bench.triton = new FakeTriton(bench.at('repository'));
    return bench;
  }

  at(...path: string[]): string {
    return join(this.folder, ...path);
  }

  /** A new agent process on the same disk. */
  async start(): Promise<SyncReconciler> {
    const urls = new UrlBook(this.store);
    const client = new BlobClient(urls, this.dispatcher, { firstBackoffMs: 1, ...this.download });
    const freeBytes = this.freeBytes && { freeBytes: () => this.freeBytes!() };
    this.cache = new BlobCache(client, { folder: this.at('cache'), minFreeBytes: 0, ...freeBytes });
    const repository = new RepositoryStore(
      { repository: this.at('repository'), staging: this.at('staging') },
      this.cache.store,
    );
    await this.cache.open();
    await repository.open();
    const triton = new TritonSource({ open: () => this.triton.control(), gpus: async () => 0, now: Date.now });
    const warmUp: WarmUp = {
      warm: (...call) => this.warmUp.warm(...call),
      prove: (...call) => this.warmUp.prove(...call),
    };
    const trace = (model: string, step: string) => this.trace?.(model, step);
    const metrics = createSyncMetrics(new Metrics());
    const parts = { triton, repository, cache: this.cache, warmUp, metrics, logger: silentLogger, trace };
    this.agent = new SyncReconciler(
      { ...parts, random: () => 0, ...this.extra },
      { pollMs: 5, idleMs: 20, ...this.settings },
    );
    this.want();
    this.agent.start();
    return this.agent;
  }

  /** Tells the agent what is desired now. */
  want(models: Record<string, DesiredModel> = this.models): void {
    this.models = models;
    this.agent.setDesired({ models, removalsAllowed: this.removalsAllowed });
  }

  stateOf(model: string): ObservedState | undefined {
    return this.agent.snapshot?.models[model]?.state;
  }

  reasonOf(model: string): string | null | undefined {
    return this.agent.snapshot?.models[model]?.reason;
  }

  async close(): Promise<void> {
    await this.agent?.stop();
    await this.dispatcher.destroy();
    await this.store.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}
