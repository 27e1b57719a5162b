import { AppError } from '@perch/contracts';
import { diffSpecs } from './spec.diff.ts';

interface Standing {
  generation: number;
  spec: object | null;
  updated_by: string;
}

/**
 * Throws `precondition_failed` with both sides' differences when another generation than the one the caller saw is in
 * force. `thing` names it (`endpoint text/a`); `base`: the spec of the generation the caller saw.
 */
export function requireGeneration(
  thing: string,
  standing: Standing | undefined,
  expected: number | undefined,
  wanted: object | null,
  base: object | null,
): void {
  if (expected === undefined) return;
  const generation = standing?.spec ? standing.generation : 0;
  if (generation === expected) return;
  throw new AppError(
    'precondition_failed',
    `${thing} is at generation ${generation}, not ${expected}: somebody changed it; look at the difference and try again`,
    {
      details: {
        expectedGeneration: expected,
        generation,
        changedBy: standing?.updated_by ?? null,
        yours: wanted === null ? [] : diffSpecs(base, wanted),
        theirs: diffSpecs(base, standing?.spec ?? null),
      },
    },
  );
}
