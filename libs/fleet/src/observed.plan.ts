import { canonicalJson, type ObservedModel, type ObservedReport, type ObservedServer } from '@perch/contracts';
import { type Memory, measuredMemory } from './placement/memory.plan.ts';

type Known = { state: string; reason: string | null; since: string; memory?: ObservedModel['memory'] | null };

export interface ObservedChange {
  changed: (ObservedModel & { name: string })[];
  gone: string[];
  /** Models that just proved ready, and models that just proved broken. */
  proved: string[];
  broken: string[];
  /** What models were found to take that we did not know, or knew otherwise. */
  measured: ({ name: string } & Memory)[];
}

const instant = (since: string): string => {
  const at = new Date(since);
  return Number.isNaN(at.getTime()) ? new Date(0).toISOString() : at.toISOString();
};

/**
 * What a report changes in what we know. While the model server itself does not answer, nothing was observed: a report
 * without models then is no news, not the news that there are none.
 */
export function planObserved(known: ReadonlyMap<string, Known>, observed: ObservedServer): ObservedChange {
  const reported = Object.entries(observed.models).map(([name, model]) => ({
    ...model,
    name,
    since: instant(model.since),
  }));
  const changed = reported.filter((model) => {
    const before = known.get(model.name);
    return (
      before?.state !== model.state ||
      before.reason !== model.reason ||
      before.since !== model.since ||
      isNewMemory(before, model)
    );
  });
  const gone = observed.triton.live ? [...known.keys()].filter((name) => !(name in observed.models)) : [];
  return {
    changed,
    gone,
    proved: changed.filter(({ state }) => state === 'ready').map(({ name }) => name),
    broken: changed.filter(({ state }) => state === 'failed').map(({ name }) => name),
    measured: changed
      .filter((model) => isNewMemory(known.get(model.name), model))
      .map(({ name, memory }) => ({ name, ...measuredMemory(memory!) })),
  };
}

const isNewMemory = (before: Known | undefined, { memory }: ObservedModel): boolean =>
  memory !== undefined && canonicalJson(memory) !== canonicalJson(before?.memory ?? null);

/** What a report tells. `base` null: the whole state; else the hash of the one that the models here, and those gone, change. */
export interface Told {
  base: string | null;
  observed: ObservedServer;
  gone: string[];
}

/** Undefined: a heartbeat alone. */
export function readTold({ observed, patch }: ObservedReport): Told | undefined {
  if (observed) return { base: null, observed, gone: [] };
  if (!patch) return undefined;
  const models: ObservedServer['models'] = {};
  const gone: string[] = [];
  for (const [name, model] of Object.entries(patch.models)) {
    if (model === null) gone.push(name);
    else models[name] = model;
  }
  return { base: patch.base, observed: { ...patch.observed, models }, gone };
}
