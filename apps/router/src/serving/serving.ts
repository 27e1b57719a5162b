import type { Logger } from '@perch/platform';
import type { IsolationSettings } from '@perch/processing/host';
import { GrpcTransport, HttpTransport, type InferenceTransport } from '@perch/triton/inference';
import { InferencePath } from '../inference.path.ts';
import { observeModules } from '../metrics/module.observe.ts';
import { observeRouter } from '../metrics/router.observe.ts';
import type { MetricFamily } from '../metrics/snapshot.ts';
import { OipPath } from '../oip.path.ts';
import { OpenAiPath } from '../openai.path.ts';
import { type OtherPaths, RouterApplication } from '../router-application.ts';
import { CountSource } from './count.source.ts';
import { CustomStats } from './custom-stats.ts';
import { DeploymentStore } from './deployment.store.ts';
import { Dispatch } from './dispatch.ts';
import { EvidenceBook } from './evidence-book.ts';
import { EvidenceLease } from './evidence-lease.ts';
import { KeyRing } from './key-ring.ts';
import { PipelineStore } from './pipeline.store.ts';
import { PipelineStats } from './pipeline-stats.ts';
import { type FileReader, ProcessingStore } from './processing.store.ts';
import { RouterStats } from './router-stats.ts';
import { ServingTables } from './serving-tables.ts';
import { Shadow } from './shadow.ts';
import { TrialPath } from './trial-path.ts';
import { TrialStats } from './trial-stats.ts';

/** The request path of one process, put together. */
export class Serving {
  readonly tables: ServingTables;
  private readonly transport: InferenceTransport;
  private readonly processing: ProcessingStore;
  private readonly deployments = new DeploymentStore();
  /** What this process counted, for the report. */
  readonly counts = new CountSource(this.deployments.stats);
  readonly lease = new EvidenceLease();
  /** What this process counted of rollouts, for the report. */
  readonly evidence = new EvidenceBook(this.lease);
  private readonly dispatch: Dispatch;
  private readonly stats: RouterStats;
  private readonly custom = new CustomStats();
  private readonly shadow: Shadow;
  private readonly trials: TrialPath;
  private readonly trialStats = new TrialStats();
  private readonly pipelines = new PipelineStore(this.deployments);
  private readonly nodeStats = new PipelineStats();

  private readonly logger: Logger;

  constructor(transport: 'http' | 'grpc', files: FileReader, logger: Logger, modules: Partial<IsolationSettings> = {}) {
    this.logger = logger;
    this.transport = transport === 'grpc' ? new GrpcTransport() : new HttpTransport();
    this.processing = new ProcessingStore(files, this.deployments, logger, modules);
    this.stats = new RouterStats(logger);
    this.tables = new ServingTables(this.processing, this.deployments, logger);
    this.tables.onSwap(() => this.evidence.keepOnly(this.tables.current!.endpoints.values(), performance.now()));
    this.tables.onSwap(() => this.nodeStats.keepOnly(this.tables.current!.endpoints));
    this.dispatch = new Dispatch(this.tables, this.lease);
    this.shadow = new Shadow(this.dispatch, this.evidence, this.trialStats);
    this.trials = new TrialPath(this.dispatch, this.evidence, this.shadow, this.trialStats, this.stats);
  }

  application(others: OtherPaths): RouterApplication {
    const keys = new KeyRing();
    const { dispatch, transport, custom, trials, logger, pipelines, nodeStats } = this;
    const serve = new InferencePath({ dispatch, transport, keys, custom, trials, logger, pipelines, nodeStats });
    const oip = new OipPath(serve, dispatch, transport, keys, trials);
    const openai = new OpenAiPath(serve, dispatch, keys);
    return new RouterApplication({ serve, oip, openai }, others, this.stats, trials);
  }

  snapshot(): MetricFamily[] {
    const { tables, deployments, dispatch, evidence, stats, custom, shadow, trialStats, nodeStats } = this;
    return [
      ...observeRouter({ tables, deployments, dispatch, evidence, stats, custom, shadow, trialStats, nodeStats }),
      ...observeModules(this.processing.host),
    ];
  }

  async close(): Promise<void> {
    await this.transport.close();
    await this.processing.close();
  }
}
