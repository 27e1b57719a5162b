import { digestOf, type UsedModel } from '@perch/contracts';
import type { ModelVariant } from '@perch/fleet';
import { LayoutFault } from './layout.plan.ts';
import type { Beside } from './needs.plan.ts';
import type { ServableVersion } from './version.source.ts';

/** A model that a version uses, with the version of it that is taken now and what that one uses in turn. */
export interface Used {
  /** What the code calls it. */
  name: string;
  use: UsedModel;
  version: ServableVersion | null;
  /** Why there is none, in words that name it. */
  fault: string | null;
  uses: Used[];
}

const parameterOf = (name: string) => `PERCH_MODEL_${name}`;

/** The version of a used model that is taken: the fixed one, else the newest published one. */
export function pickUsed(
  name: string,
  use: UsedModel,
  versions: readonly ServableVersion[],
): Pick<Used, 'version' | 'fault'> {
  const none = (why: string) => ({ version: null, fault: `uses ${use.model} (as ${name}), ${why}` });
  if (versions.length === 0) return none('which does not exist');
  if (use.version !== undefined) {
    const fixed = versions.find(({ number }) => number === use.version);
    if (!fixed) return none(`which has no version ${use.version}`);
    if (fixed.state === 'draft' || fixed.state === 'published') return { version: fixed, fault: null };
    return none(`whose version ${use.version} is ${fixed.state}`);
  }
  const published = versions.filter(({ state }) => state === 'published').sort((a, b) => b.number - a.number);
  return published[0] ? { version: published[0], fault: null } : none('of which no version is published');
}

/** The sentence for models that use one another in a circle; `path` leads from the first to the one met again. */
export const circleFault = (path: readonly string[]): string => `the uses go in a circle: ${path.join(' -> ')}`;

/** Equal as long as the same versions are taken for all uses, theirs included. */
export const usesDigest = (uses: readonly Used[]): string =>
  digestOf(
    uses.map(({ name, use, version, fault, uses: inner }) => ({
      name,
      as: use.as,
      model: use.model,
      version: version && [version.number, version.manifestDigest, version.signature],
      fault,
      uses: usesDigest(inner),
    })),
  );

/** Throws `LayoutFault` for the first use that cannot be met, at whatever depth. */
export function requireUses(uses: readonly Used[]): void {
  for (const { fault, uses: inner, use } of uses) {
    if (fault) throw new LayoutFault(fault);
    try {
      requireUses(inner);
    } catch (error) {
      if (!(error instanceof LayoutFault)) throw error;
      throw new LayoutFault(`${use.model} ${error.message}`);
    }
  }
}

/** What a model gets beside it for the uses of its code. */
export function besideOf(uses: readonly (Used & { variant: ModelVariant })[]): Beside {
  const parameters: Record<string, string> = {};
  const needs = uses.map(({ name, use, variant }) => {
    const literal = use.as === 'literal';
    if (!literal) parameters[parameterOf(name)] = variant.tritonModel;
    const { tritonModel, model } = variant;
    return { tritonModel, as: literal ? name : null, model, of: use.model, variant };
  });
  return { needs, parameters };
}
