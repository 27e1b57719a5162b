import { describe, expect, it } from 'vitest';
import { gibibyte, plannedServer, serverFacts } from '../../../test/support/placement.ts';
import { describePool } from './placement/pool.plan.ts';
import { describeServerModel, type ModelSight } from './server-model.plan.ts';

const sight = (more: Partial<ModelSight> = {}): ModelSight => ({
  name: 'm', desired: true, needs: [], observed: null, memory: null, placements: [active()], ...more,
}); // biome-ignore format: one record
const active = (more: object = {}) => ({
  endpoint: 'e',
  state: 'active' as const,
  waits: null,
  yields: false,
  ...more,
});
const is = (state: NonNullable<ModelSight['observed']>['state']) => ({ state, reason: null, since: 'then' });
const well = { live: true, behind: false };

describe('what a model on a server waits for', () => {
  it.each<[string, ModelSight, typeof well, string | null]>([
    ['it is as it should be', sight({ observed: is('ready') }), well, null],
    ['the agent has not heard of it', sight(), { live: true, behind: true }, 'the agent to take its document'],
    ['the agent has not begun', sight(), well, 'the agent to begin with it'],
    ['it loads', sight({ observed: is('loading') }), well, 'the model server to be done with it'],
    ['it failed', sight({ observed: is('failed') }), well, 'other files or other settings'],
    ['the agent is silent', sight(), { live: false, behind: false }, 'the agent to report again'],
    ['the agent is silent, and all was well', sight({ observed: is('ready') }), { live: false, behind: false }, null],
    ['it leaves', sight({ observed: is('ready'), placements: [active({ state: 'leaving' })] }), well, 'routers to send no more requests here'],
    ['it leaves for one and stays for another', sight({ observed: is('ready'), placements: [active({ state: 'leaving' }), active()] }), well, null],
    ['it is to be unloaded', sight({ desired: false, observed: is('ready'), placements: [] }), well, 'the model server to unload it'],
    ['it was placed a moment ago', sight({ desired: false }), well, 'its document to be published'],
    ['it is being moved', sight({ observed: is('ready'), placements: [active({ yields: true })] }), well, 'e: to be ready on another server'],
    ['its server is drained', sight({ observed: is('ready'), placements: [active({ waits: 'to be ready on s2' })] }), well, 'e: to be ready on s2'],
  ])('%s', (_what, one, server, waitsFor) => expect(describeServerModel(one, server).waitsFor).toBe(waitsFor)); // biome-ignore format: a table
});

describe('a pool', () => {
  it('has the room that its live servers in service have', () => {
    const facts = serverFacts({ ramBytes: 8 * gibibyte });
    const servers = [
      plannedServer('a', { facts, models: 2 }),
      plannedServer('b', { facts, models: 3, drain: 'orderly' }),
      plannedServer('c', { facts, presence: 'silent' }),
      plannedServer('d'),
    ];
    expect(describePool('p', servers, 4)).toEqual({
      name: 'p',
      labels: {},
      servers: 4,
      live: 3,
      draining: 1,
      models: 5,
      endpoints: 4,
      ram: { totalBytes: 24 * gibibyte, freeBytes: Math.floor(7.6 * gibibyte) },
      gpu: null,
    });
    expect(describePool('empty', [], 0)).toMatchObject({ servers: 0, ram: null, gpu: null });
  });
});
