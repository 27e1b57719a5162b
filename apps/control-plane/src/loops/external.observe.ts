import type { ObservedModel, ObservedServer } from '@perch/contracts';
import type { ExternalKnowledge, ExternalPlan, ExternalSight } from '@perch/fleet';
import { type TritonControl, TritonFault } from '@perch/triton/control';

export interface ExternalAnswers extends Pick<ExternalSight, 'index' | 'loaded'> {
  triton: ObservedServer['triton'];
}

/** What a Triton says of itself and of its models. Throws a `TritonFault` when it does not answer. */
export async function askTriton(control: TritonControl, { server }: ExternalKnowledge): Promise<ExternalAnswers> {
  const [{ name, version }, live, ready] = await Promise.all([
    control.serverMetadata(),
    control.live(),
    control.ready(),
  ]);
  const index = await control.index();
  // Models that came with the request are in no index; the statistics name everything that is loaded.
  const stats = server.mode === 'explicit' ? await control.statistics() : [];
  const loaded = new Set(stats.map((one) => one.name));
  return { triton: { live, ready, name, version, gpus: 0 }, index, loaded };
}

/** Faults that say that the model changed meanwhile; everything else is the server's and ends the look. */
const passing = new Set(['unknown_model', 'not_ready', 'load', 'model', 'other']);

/**
 * The plan's models with the signatures of those that became ready, asked once a model. One whose signature cannot be
 * had now is told as loading, and asked again next time.
 */
export async function describeModels(
  control: TritonControl,
  { models, describe }: ExternalPlan,
): Promise<Record<string, ObservedModel>> {
  const told = { ...models };
  const signatures = new Map<string, Promise<Partial<ObservedModel>>>();
  for (const { key, model } of describe) {
    let asked = signatures.get(model);
    if (!asked) {
      asked = signatureOf(control, model);
      signatures.set(model, asked);
    }
    told[key] = { ...told[key]!, ...(await asked) };
  }
  return told;
}

async function signatureOf(control: TritonControl, model: string): Promise<Partial<ObservedModel>> {
  try {
    const { inputs, outputs } = await control.modelMetadata(model);
    const { max_batch_size: maxBatchSize = 0 } = await control.modelConfig(model);
    return { inputs, outputs, maxBatchSize };
  } catch (error) {
    if (!(error instanceof TritonFault) || !passing.has(error.kind)) throw error;
    return { state: 'loading', reason: error.text };
  }
}
