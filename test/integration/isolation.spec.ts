import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { doubling, IsolationStand } from './isolation-stand.ts';

describe('where modules run', () => {
  let stand: IsolationStand;
  beforeAll(async () => {
    stand = await IsolationStand.start();
  });
  afterAll(() => stand?.stop());

  it.each(['inline', 'worker'] as const)('%s: preprocess, the model, postprocess, carry', async (isolation) => {
    stand.set('echo', stand.module('demo/echo', doubling), isolation);
    await stand.publish();
    const answer = await stand.ask('echo', { x: [1, 2.5], tag: 'a' });
    expect(answer.json).toEqual({ y: [2, 5], tag: 'a' });
  });
});
