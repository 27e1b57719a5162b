import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Metrics, silentLogger } from '@perch/platform';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BlobCache } from './blob.cache.ts';
import { BlobClient } from './blob.client.ts';
import { UrlBook } from './blob.source.ts';
import { RepositoryStore } from './repository.store.ts';
import { SyncReconciler } from './sync.reconcile.ts';
import { createSyncMetrics } from './sync-metrics.ts';
import { FakeTriton } from './triton.fake.ts';
import { TritonSource } from './triton.source.ts';
import { desiredModelOf, FakeBlobStore } from './world.fake.ts';

describe('SyncReconciler', () => {
  let folder: string;
  let store: FakeBlobStore;
  let triton: FakeTriton;
  let dispatcher: Agent;
  let reconciler: SyncReconciler;

  const build = async () => {
    const client = new BlobClient(new UrlBook(store), dispatcher, { firstBackoffMs: 1 });
    const cache = new BlobCache(client, { folder: join(folder, 'cache') });
    const repository = new RepositoryStore(
      { repository: join(folder, 'repository'), staging: join(folder, 'staging') },
      cache.store,
    );
    await cache.open();
    await repository.open();
    const source = new TritonSource({ open: () => triton.control(), gpus: async () => 0, now: Date.now });
    return new SyncReconciler({
      triton: source,
      repository,
      cache,
      warmUp: { warm: async () => ({ outcome: 'ok' }) },
      metrics: createSyncMetrics(new Metrics()),
      logger: silentLogger,
    });
  };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-sync-'));
    store = await new FakeBlobStore().start();
    triton = new FakeTriton(join(folder, 'repository'));
    dispatcher = new Agent();
    reconciler = await build();
  });

  afterEach(async () => {
    await reconciler.stop();
    await dispatcher.destroy();
    await store.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('pulls, stages, loads, warms and reports what the model says about itself', async () => {
    const [name, model] = desiredModelOf(store, 'weights', { extra: { 'labels.txt': 'cat\ndog\n' } });
    reconciler.setDesired({ models: { [name]: model }, removalsAllowed: true });
    reconciler.start();
    await vi.waitFor(() => expect(reconciler.snapshot?.models[name]?.state).toBe('ready'), {
      timeout: 5_000,
      interval: 5,
    });
    expect(reconciler.snapshot?.models[name]).toMatchObject({ reason: null, maxBatchSize: 8, inputs: [{ name: 'x' }] });
    expect(triton.served(name)).toBe('weights');
    expect(await readFile(join(folder, 'repository', name, 'config.pbtxt'), 'utf8')).toContain(`name: "${name}"`);
    expect(await readFile(join(folder, 'repository', name, 'labels.txt'), 'utf8')).toBe('cat\ndog\n');
  });
});
