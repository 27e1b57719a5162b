import type { DesiredServer, Enrolled, ObservedServer } from '@perch/contracts';
import { silentLogger } from '@perch/platform';
import { type DocumentStore, type Documents, heldRemovals, newestDocument, type SyncReconciler } from '@perch/sync';
import type { AgentConfig } from '../../apps/agent/src/agent.config.ts';
import { ControlPlaneClient } from '../../apps/agent/src/control-plane.client.ts';
import { DesiredLoop } from '../../apps/agent/src/desired.loop.ts';
import type { IdentityStore } from '../../apps/agent/src/identity.store.ts';
import type { ObservedSource } from '../../apps/agent/src/observed.source.ts';
import { ReportLoop } from '../../apps/agent/src/report.loop.ts';
import { SessionService } from '../../apps/agent/src/session.service.ts';
import { SimulatedTriton, type TritonHabits } from './simulated-triton.ts';

/** Enough room that memory decides nothing, and known, so that it is counted all the same. */
const facts = {
  supervised: false,
  backends: ['onnxruntime'],
  tensorrt: null,
  onnxruntime: null,
  gpus: [],
  ramBytes: 2 ** 40,
};

export interface AgentSettings {
  name: string;
  controlUrl: string;
  joinKey: string;
  habits: TritonHabits;
}

/** The agent's own loops (session, documents and patches, heartbeats by hash) around a Triton in memory. */
export class SimulatedAgent {
  readonly triton: SimulatedTriton;
  readonly name: string;
  private readonly client: ControlPlaneClient;
  private readonly desired: DesiredLoop;
  private readonly reports: ReportLoop;

  constructor({ name, controlUrl, joinKey, habits }: AgentSettings) {
    this.name = name;
    this.triton = new SimulatedTriton(habits);
    this.client = new ControlPlaneClient(controlUrl);
    const address = { PERCH_TRITON_HTTP: `${name}:8000`, PERCH_TRITON_GRPC: `${name}:8001` };
    const config = { ...address, PERCH_NAME: name, PERCH_LABELS: {}, PERCH_JOIN_KEY: joinKey } as AgentConfig;
    const session = new SessionService(config, silentLogger, this.client, new IdentityInMemory() as never);
    const reconciler = this.triton as unknown as SyncReconciler;
    this.desired = new DesiredLoop(silentLogger, this.client, session, documentsInMemory(), reconciler);
    const observed = { onChange: this.triton.onChange.bind(this.triton), read: this.read.bind(this) };
    this.reports = new ReportLoop(
      silentLogger,
      this.client,
      session,
      this.desired,
      observed as unknown as ObservedSource,
    );
  }

  /** The document it goes by. */
  get document(): DesiredServer | null {
    return newestDocument(this.desired.documents);
  }

  /** Nothing to load, nothing to unload. */
  get inStep(): boolean {
    const wanted = Object.keys(this.document?.models ?? {});
    const { models, inStep } = this.triton.snapshot;
    return inStep && wanted.length === Object.keys(models).length && wanted.every((name) => name in models);
  }

  async start(): Promise<void> {
    await this.desired.start();
    this.reports.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.desired.stop(), this.reports.stop()]);
    this.triton.stop();
    await this.client.close();
  }

  private async read(documents: Documents): Promise<ObservedServer> {
    const newest = newestDocument(documents);
    const { triton, models, orphans } = this.triton.snapshot;
    return {
      lineage: newest?.lineage ?? null,
      revision: newest?.revision ?? 0,
      heldRemovals: heldRemovals(documents, orphans),
      triton,
      models,
      disk: { freeBytes: 2 ** 40, cacheBytes: 0 },
      facts: { ...facts, host: this.name },
      usage: { ramBytes: 2 ** 30, gpuBytes: {} },
    };
  }
}

class IdentityInMemory implements Pick<IdentityStore, 'load' | 'save'> {
  private identity: Enrolled | undefined;
  async load(): Promise<Enrolled | undefined> {
    return this.identity;
  }
  async save(identity: Enrolled): Promise<void> {
    this.identity = identity;
  }
}

const documentsInMemory = (): DocumentStore => {
  const store: Pick<DocumentStore, 'load' | 'save'> = {
    load: async () => ({ documents: { accepted: null, pending: null } }),
    save: async () => undefined,
  };
  return store as DocumentStore;
};
