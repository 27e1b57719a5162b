import { type DesiredModel, digestOf } from '@perch/contracts';

/** A model that a server is to hold under `name`; `needs`: names in the same document. */
export interface HeldModel {
  name: string;
  tritonModel: string;
  digest: string;
  needs: string[];
  /** Nobody knows yet what it takes on this kind of device. */
  measure: boolean;
}

/** One name that a placed model needs in the server's document, and the model it stands for; oldest placement first. */
export interface HeldNeed {
  needer: string;
  name: string;
  tritonModel: string;
  digest: string;
}

/**
 * All that a server's document names. A literal name stands for what was placed last under it: a newer version of a used
 * model replaces the older one in place, and the older one comes back when the newer one is let go.
 */
export function planHeld(models: readonly Omit<HeldModel, 'needs'>[], needs: readonly HeldNeed[]): HeldModel[] {
  const byName = new Map(models.map((model) => [model.name, { ...model, needs: [] as string[] }]));
  for (const { name, tritonModel, digest } of needs)
    if (name !== tritonModel) byName.set(name, { name, tritonModel, digest, measure: false, needs: [] });
  for (const { needer, name } of needs) {
    const model = byName.get(needer);
    if (model && !model.needs.includes(name)) model.needs.push(name);
  }
  return [...byName.values()].map((model) => ({ ...model, needs: [...model.needs].sort() }));
}

/** What tells one published body from another: the model's own digest while it stands alone and is measured. */
export const heldDigest = ({ digest, needs, measure }: HeldModel): string =>
  needs.length === 0 && !measure ? digest : digestOf({ digest, needs, measure });

/** The body as the server is told it. `names`: all that its document holds. */
export function heldBody(body: DesiredModel, { needs, measure }: HeldModel, names: ReadonlySet<string>): DesiredModel {
  const all = [...new Set([...(body.needs ?? []), ...needs])].filter((name) => names.has(name)).sort();
  return { ...body, ...(all.length > 0 ? { needs: all } : {}), ...(measure ? { measure: true } : {}) };
}
