import { describe, expect, it } from 'vitest';
import { mergeStates } from './report.decide.ts';
import type { WorkerState } from './serving/serving-tables.ts';

const state = (revision: number, fields: Partial<WorkerState> = {}): WorkerState => ({
  lineage: 'l',
  revision,
  inFlight: {},
  problems: {},
  held: false,
  ...fields,
});

describe('mergeStates', () => {
  it('acknowledges the lowest revision and adds up what runs', () => {
    const states = [state(7, { inFlight: { a: 1 } }), state(5, { inFlight: { a: 2, b: 1 }, problems: { c: 'why' } })];
    expect(mergeStates(states)).toEqual({
      lineage: 'l',
      revision: 5,
      inFlight: { a: 3, b: 1 },
      unlisted: {},
      problems: { c: 'why' },
      held: false,
    });
  });
  it('acknowledges nothing while one worker has no table, or another lineage', () => {
    expect(mergeStates([state(7), state(-1, { lineage: null })])).toMatchObject({ lineage: null, revision: 0 });
    expect(mergeStates([state(7), state(3, { lineage: 'm' })])).toMatchObject({ lineage: null, revision: 0 });
    expect(mergeStates([state(-1, { lineage: null })])).toMatchObject({ lineage: null, revision: 0 });
    expect(mergeStates([])).toMatchObject({ lineage: null, revision: 0 });
  });
});
