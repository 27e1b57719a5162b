import { describe, expect, it } from 'vitest';
import { desiredModel } from '../../../test/support/placement.ts';
import { heldBody, heldDigest, planHeld } from './desired.plan.ts';

const model = (name: string, measure = false) => ({ name, tritonModel: name, digest: `digest of ${name}`, measure });
const need = (needer: string, name: string, tritonModel = name) => ({
  needer,
  name,
  tritonModel,
  digest: `digest of ${tritonModel}`,
});

describe('what a server is told to hold', () => {
  it('models under their own names, needed ones under the names they are called by', () => {
    const held = planHeld([model('a'), model('step')], [need('a', 'step'), need('a', 'tok', 'tok-v1')]);
    expect(held.map(({ name, tritonModel, needs }) => [name, tritonModel, needs])).toEqual([
      ['a', 'a', ['step', 'tok']],
      ['step', 'step', []],
      ['tok', 'tok-v1', []],
    ]);
  });

  it('what was placed last stands under a name that two want', () => {
    const held = planHeld([model('a'), model('b')], [need('a', 'tok', 'tok-v1'), need('b', 'tok', 'tok-v2')]);
    expect(held.find(({ name }) => name === 'tok')!.tritonModel).toBe('tok-v2');
  });

  it('a model that stands alone and is measured keeps its own digest, so that nothing is published anew', () => {
    const [plain] = planHeld([model('a')], []);
    const [measured] = planHeld([model('a', true)], []);
    const [needy] = planHeld([model('a')], [need('a', 'b')]);
    expect(heldDigest(plain!)).toBe('digest of a');
    expect(new Set([plain, measured, needy].map((one) => heldDigest(one!))).size).toBe(3);
  });

  it('names in a body that the document does not hold are left out', () => {
    const body = { ...desiredModel('d'), needs: ['gone', 'there'] };
    const [held] = planHeld([model('a', true)], [need('a', 'tok')]);
    expect(heldBody(body, held!, new Set(['a', 'tok', 'there']))).toMatchObject({
      needs: ['there', 'tok'],
      measure: true,
    });
    const [plain] = planHeld([model('a')], []);
    expect(heldBody(desiredModel('d'), plain!, new Set(['a']))).toEqual(desiredModel('d'));
  });
});
