import { isDeepStrictEqual } from 'node:util';
import type { PipelineCondition } from '@perch/contracts/plain';
import { type PickScope, readPick } from './pick-value.ts';

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === false ||
  value === 0 ||
  value === '' ||
  (typeof value === 'object' && !Buffer.isBuffer(value) && Object.keys(value).length === 0);

/** Whether a node runs; all that is asked must hold. What its pick points at may be absent: that is null. */
export function readCondition(condition: PipelineCondition): (scope: PickScope) => boolean {
  const { pick, equals, notEquals, above, below, exists } = condition;
  const read = readPick(pick.endsWith('?') ? pick : `${pick}?`);
  const asked = [equals, notEquals, above, below, exists].some((one) => one !== undefined);
  return (scope) => {
    const value = read(scope);
    if (!asked) return !isEmpty(value);
    return (
      (equals === undefined || isDeepStrictEqual(value, equals)) &&
      (notEquals === undefined || !isDeepStrictEqual(value, notEquals)) &&
      (above === undefined || (typeof value === 'number' && value > above)) &&
      (below === undefined || (typeof value === 'number' && value < below)) &&
      (exists === undefined || (value !== null) === exists)
    );
  };
}
