import { describe, expect, it } from 'vitest';
import { type CanaryFlags, planCanary } from './canary.plan.ts';

const notes: string[] = [];
const plan = (flags: CanaryFlags) => planCanary(flags, { note: (sentence) => void notes.push(sentence) });

describe('model canary', () => {
  it.each<[CanaryFlags, object]>([
    [
      { endpoint: 'e', weights: ['0.1', '0.9'], inputEndpoints: ['m/2', 'm/1'] },
      { name: 'e', targets: ['m/2', 'm/1'], weights: [0.1, 0.9] },
    ],
    [
      { endpoint: 'e', weights: ['1'], inputEndpointPrefix: 'm/' },
      { targetPrefix: 'm', newestFirst: [1] },
    ],
    [
      { endpoint: 'e', weights: ['1', '2'], inputEndpointsPrefix: 'm/v' },
      { targetPrefix: 'm/v', newestFirst: [1, 2] },
    ],
    [{ endpoint: 'my model', weights: ['1'], inputEndpoints: ['the model/1'] }, { name: 'my-model', targets: ['the-model/1'] }], // biome-ignore format: one row reads better
  ])('%j', (flags, spec) => expect(plan(flags)).toMatchObject({ kind: 'Split', ...spec }));

  it.each<[CanaryFlags, string]>([
    [{ endpoint: 'e', inputEndpoints: ['m/1'] }, '--weights'],
    [{ endpoint: 'e', weights: [], inputEndpoints: ['m/1'] }, '--weights'],
    [{ endpoint: 'e', weights: ['0', '0'], inputEndpoints: ['m/1', 'm/2'] }, 'above zero'],
    [{ endpoint: 'e', weights: ['nan'], inputEndpoints: ['m/1'] }, 'wants a number'],
    [{ endpoint: 'e', weights: ['-1'], inputEndpoints: ['m/1'] }, 'not below zero'],
    [{ endpoint: 'e', weights: ['1', '2'], inputEndpoints: ['m/1'] }, 'wants 1, one for each'],
    [{ endpoint: 'e', weights: ['1'] }, 'either --input-endpoints'],
    [{ endpoint: 'e', weights: ['1'], inputEndpoints: ['m'], inputEndpointPrefix: 'm' }, 'either --input-endpoints'],
    [{ endpoint: 'e', weights: ['1'], inputEndpointPrefix: 'm', inputEndpointsPrefix: 'n' }, 'one flag'],
    [{ weights: ['1'], inputEndpoints: ['m'] }, '--endpoint'],
  ])('%j is refused', (flags, words) => expect(() => plan(flags)).toThrow(words));
});
