import { Inject, Injectable } from '@nestjs/common';
import { digestOf, type ObservedServer } from '@perch/contracts';
import { type ExternalKnowledge, ExternalSource, planExternal } from '@perch/fleet';
import { LOGGER, type Logger } from '@perch/platform';
import type { Outcome } from '@perch/platform/database';
import { TritonFault } from '@perch/triton/control';
import { ExternalApply } from './external.apply.ts';
import { askTriton, describeModels } from './external.observe.ts';
import { ExternalTritons } from './external-triton.client.ts';

const everyMs = 1_000;
/** While something is being loaded or unloaded. */
const busyMs = 200;
/** Whichever control plane looks: the state told is the same. */
const bootId = 'external';

/** Stands in for the agent where a Triton has none: asks it, tells what it holds, loads what is to be loaded. */
@Injectable()
export class ExternalReconcile {
  constructor(
    private readonly source: ExternalSource,
    private readonly tritons: ExternalTritons,
    private readonly applier: ExternalApply,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  async reconcile(id: string): Promise<Outcome> {
    const knowledge = await this.source.knowledge(id);
    if (!knowledge) {
      this.applier.forget(id);
      return { again: 'on-change' };
    }
    try {
      return { again: 'after', ms: (await this.pass(knowledge)) ? busyMs : everyMs };
    } catch (error) {
      if (!(error instanceof TritonFault)) throw error;
      if (await this.source.noteProblem(id, error.text))
        this.logger.warn('an external Triton does not answer as it should', { server: knowledge.server.name, error });
    }
    return { again: 'after', ms: everyMs };
  }

  /** True: something is on its way. Told before it is done: whoever takes over after a crash finds in the database what may have been begun. */
  private async pass(knowledge: ExternalKnowledge): Promise<boolean> {
    const { server, known, desired, mayUnload } = knowledge;
    const control = this.tritons.of(server);
    const { triton, index, loaded } = await askTriton(control, knowledge);
    const loading = this.applier.loading(server.id);
    const failures = this.applier.failures(server.id, desired);
    const now = new Date().toISOString();
    const plan = planExternal({ known, desired, mayUnload, index, loaded, loading, failures, now });
    const state = stateOf(knowledge, triton, plan.models);
    // Signatures are told with what is new and kept; they are no part of what makes a state new.
    const hash = digestOf(state);
    const isNews = plan.describe.length > 0 || hash !== server.observed_hash || server.boot_id !== bootId;
    const observed = isNews ? { ...state, models: await describeModels(control, plan) } : undefined;
    await this.source.report(server.id, bootId, hash, observed);
    await this.applier.act(server, plan);
    return loading.size + plan.load.length + plan.unload.length > 0;
  }
}

/** `disk`: not told to anybody but an agent. */
const stateOf = (
  { revision }: ExternalKnowledge,
  triton: ObservedServer['triton'],
  models: ObservedServer['models'],
): ObservedServer => ({
  lineage: null,
  revision,
  heldRemovals: [],
  triton,
  models,
  disk: { freeBytes: 0, cacheBytes: 0 },
});
