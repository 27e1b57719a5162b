import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable, type Provider } from '@nestjs/common';
import { LOGGER, type Logger, Metrics } from '@perch/platform';
import {
  BlobCache,
  BlobClient,
  type Crash,
  CrashBook,
  chooseStaging,
  createSyncMetrics,
  RepositoryStore,
  readGpus,
  type Supervisor,
  type SyncMetrics,
  SyncReconciler,
  TritonSource,
  UrlBook,
  UsageSource,
  WarmUpClient,
} from '@perch/sync';
import { createTritonControl } from '@perch/triton/control';
import { HttpTransport } from '@perch/triton/inference';
import { Agent } from 'undici';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { ControlPlaneClient } from './control-plane.client.ts';
import { SYNC_METRICS } from './observed.source.ts';
import { SUPERVISOR } from './server.source.ts';
import { SessionService } from './session.service.ts';

/** Connections that the agent holds; closed last. */
@Injectable()
export class OutsideConnections {
  /** To the artifact store and Triton's metrics port. */
  readonly dispatcher = new Agent({ connect: { timeout: 10_000 }, connections: 16, keepAliveTimeout: 10_000 });
  readonly transport = new HttpTransport();

  constructor(private readonly client: ControlPlaneClient) {}

  async close(): Promise<void> {
    await this.transport.close();
    await this.dispatcher.destroy();
    await this.client.close();
  }
}

function makeCache(config: AgentConfig, session: SessionService, outside: OutsideConnections, metrics: SyncMetrics) {
  const client = new BlobClient(new UrlBook(session), outside.dispatcher);
  return new BlobCache(client, {
    folder: join(config.PERCH_DATA_DIR, 'cache'),
    keepBytes: config.PERCH_CACHE_KEEP_BYTES,
    onPulled: (sizeBytes, seconds) => {
      metrics.pullBytes.add({}, sizeBytes);
      metrics.pullSeconds.observe({}, seconds);
    },
  });
}

async function makeRepository(config: AgentConfig, cache: BlobCache) {
  await mkdir(config.PERCH_DATA_DIR, { recursive: true });
  const repository = config.PERCH_TRITON_REPOSITORY;
  return new RepositoryStore(
    { repository, staging: await chooseStaging(config.PERCH_DATA_DIR, repository) },
    cache.store,
  );
}

function makeTriton(config: AgentConfig, outside: OutsideConnections, metrics: SyncMetrics) {
  const metricsPort = config.PERCH_TRITON_METRICS;
  return new TritonSource({
    open: () =>
      createTritonControl({
        grpc: config.PERCH_TRITON_GRPC,
        onCall: (call, outcome) => metrics.tritonCalls.add({ call, outcome }),
      }),
    gpus: async () => (metricsPort ? (await readGpus(metricsPort, outside.dispatcher)).length : 0),
    now: Date.now,
  });
}

/** How Triton ended: its parent knows; anybody else only sees that the connection broke. */
const crashSince =
  (supervisor: Supervisor) =>
  async (sinceMs: number): Promise<Crash> => {
    const end = await supervisor.endSince(sinceMs);
    return end && { evidence: end.kind, words: end.words };
  };

/** What a reconciler is made of here. */
interface Ingredients {
  config: AgentConfig;
  logger: Logger;
  metrics: SyncMetrics;
  outside: OutsideConnections;
  supervisor: Supervisor | null;
  usage: UsageSource;
  parts: { triton: TritonSource; repository: RepositoryStore; cache: BlobCache };
}

function makeReconciler({ config, logger, metrics, outside, supervisor, usage, parts }: Ingredients) {
  const warmUp = new WarmUpClient(outside.transport, {
    http: config.PERCH_TRITON_HTTP,
    grpc: config.PERCH_TRITON_GRPC,
  });
  const crashes = new CrashBook(join(config.PERCH_DATA_DIR, 'crashes.json'));
  const known = supervisor ? { crashSince: crashSince(supervisor), memoryKills: () => supervisor.memoryKills } : {};
  const reconciler = new SyncReconciler(
    { ...parts, warmUp, metrics, logger, crashes, usage, ...known },
    { loadDeadlineMs: config.PERCH_LOAD_DEADLINE_MS },
  );
  reconciler.onChange(({ triton }) => triton.live && supervisor?.noteAnswer());
  supervisor?.onChange(() => reconciler.wake());
  return reconciler;
}

/** The parts of libs/sync, put together with this agent's settings. */
export const syncProviders: Provider[] = [
  OutsideConnections,
  { provide: SYNC_METRICS, inject: [Metrics], useFactory: createSyncMetrics },
  { provide: BlobCache, inject: [CONFIG, SessionService, OutsideConnections, SYNC_METRICS], useFactory: makeCache },
  { provide: RepositoryStore, inject: [CONFIG, BlobCache], useFactory: makeRepository },
  { provide: TritonSource, inject: [CONFIG, OutsideConnections, SYNC_METRICS], useFactory: makeTriton },
  {
    provide: SyncReconciler,
    inject: [
      CONFIG,
      LOGGER,
      SYNC_METRICS,
      OutsideConnections,
      SUPERVISOR,
      UsageSource,
      TritonSource,
      RepositoryStore,
      BlobCache,
    ],
    useFactory: (
      config: AgentConfig,
      logger: Logger,
      metrics: SyncMetrics,
      outside: OutsideConnections,
      supervisor: Supervisor | null,
      ...[usage, triton, repository, cache]: [UsageSource, TritonSource, RepositoryStore, BlobCache]
    ) => makeReconciler({ config, logger, metrics, outside, supervisor, usage, parts: { triton, repository, cache } }),
  },
];
