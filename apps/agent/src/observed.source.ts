import { Inject, Injectable } from '@nestjs/common';
import { type ObservedServer, observedStates } from '@perch/contracts';
import { BlobCache, type Documents, heldRemovals, newestDocument, type SyncMetrics, SyncReconciler } from '@perch/sync';

import { PeerServer } from './peer.server.ts';
import { ServerSource } from './server.source.ts';

/** Injection token of the metrics of sync. */
export const SYNC_METRICS = Symbol('sync metrics');

const diskStepBytes = 256 * 1024 ** 2;

/** The state of this server in the words of the contract, and as gauges. */
@Injectable()
export class ObservedSource {
  constructor(
    private readonly reconciler: SyncReconciler,
    private readonly cache: BlobCache,
    @Inject(SYNC_METRICS) private readonly metrics: SyncMetrics,
    private readonly server: ServerSource,
    private readonly peers: PeerServer,
  ) {}

  onChange(listener: () => void): void {
    this.reconciler.onChange(listener);
    this.server.onChange(listener);
  }

  /** Undefined before the first look at Triton. */
  async read(documents: Documents): Promise<ObservedServer | undefined> {
    const { snapshot } = this.reconciler;
    if (!snapshot) return undefined;
    const newest = newestDocument(documents);
    const { triton, models, orphans, inStep } = snapshot;
    this.measure(models, newest?.revision ?? 0, inStep);
    const freeBytes = await this.cache.freeBytes().catch(() => 0);
    return {
      lineage: newest?.lineage ?? null,
      revision: newest?.revision ?? 0,
      heldRemovals: heldRemovals(documents, orphans),
      triton,
      models,
      // In steps, so that a disk that others write to is no news every two seconds.
      disk: { freeBytes: Math.floor(freeBytes / diskStepBytes) * diskStepBytes, cacheBytes: this.cache.sizeBytes },
      ...this.server.report,
      ...(this.peers.address === undefined ? {} : { peer: this.peers.address }),
    };
  }

  private measure(models: ObservedServer['models'], revision: number, inStep: boolean): void {
    const { metrics } = this;
    for (const state of observedStates)
      metrics.models.set({ state }, Object.values(models).filter((model) => model.state === state).length);
    metrics.desiredRevision.set({}, revision);
    if (inStep) metrics.observedRevision.set({}, revision);
    metrics.cacheBytes.set({}, this.cache.sizeBytes);
  }
}
