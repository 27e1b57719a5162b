import { canonicalJson, type ObservedReport, type ObservedServer } from '@perch/contracts';

/** The last state that was taken, and its hash. */
export interface Taken {
  hash: string;
  observed: ObservedServer;
}

/** States that others act on; the others are progress, which people look at. */
const counts = new Set(['ready', 'failed', 'stuck']);

const news = ({ triton, facts, supervision, leaving, heldRemovals, lineage }: ObservedServer) =>
  canonicalJson({ triton, facts, supervision, leaving, heldRemovals, lineage });

/** Whether somebody waits for this: anything but a model that came a step further on its way, or figures that moved. */
export function isUrgent(taken: ObservedServer | undefined, now: ObservedServer): boolean {
  if (!taken || news(taken) !== news(now)) return true;
  for (const [name, { state }] of Object.entries(now.models)) {
    const before = taken.models[name]?.state;
    if (before !== state && (counts.has(state) || (before !== undefined && counts.has(before)))) return true;
  }
  return Object.keys(taken.models).some((name) => !(name in now.models));
}

/**
 * What to send so that the control plane knows `now`: nothing but the hash when it does already, what changed since the
 * state it took, or the whole. While the model server does not answer nothing is observed, and that is told whole.
 */
export function planReport(taken: Taken | undefined, now: Taken): Pick<ObservedReport, 'observed' | 'patch'> {
  if (!taken) return { observed: now.observed };
  if (taken.hash === now.hash) return {};
  if (!taken.observed.triton.live || !now.observed.triton.live) return { observed: now.observed };
  const { models, ...observed } = now.observed;
  const before = taken.observed.models;
  const changed: NonNullable<ObservedReport['patch']>['models'] = {};
  for (const [name, model] of Object.entries(models))
    if (before[name] !== model && canonicalJson(before[name] ?? null) !== canonicalJson(model)) changed[name] = model;
  for (const name of Object.keys(before)) if (!(name in models)) changed[name] = null;
  return { patch: { base: taken.hash, observed, models: changed } };
}
