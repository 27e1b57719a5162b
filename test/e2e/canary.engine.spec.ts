import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Explanation, Rollout, RolloutEvent, RolloutPolicyInput } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { ConstantLoad } from '../support/load.ts';
import { scaleModel } from '../support/onnx.ts';
import { Stack } from '../support/stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const endpoint = 'load/scale';
const wide = { margin: { absolute: 0.1, relative: 0.2 } };
/** As `quick`, and margins that some hundred requests can prove. */
const policy: RolloutPolicyInput = {
  dwellMs: 1_000,
  bakeMs: 2_000,
  slowGraceMs: 0,
  error: wide,
  contract: wide,
  slow: false,
  weightsPercent: [10, 50],
};

describe('a canary on the embedded engine', () => {
  let stack: Stack;
  /** Types of events, as a webhook was told of them. */
  const told: string[] = [];
  const receiver = createServer((request, response) => {
    told.push(String(request.headers['x-perch-event']));
    request.resume().on('end', () => response.writeHead(204).end());
  });
  beforeAll(async () => {
    stack = await Stack.start();
  });
  afterAll(async () => {
    receiver.close();
    await stack?.stop();
  });

  it('is promoted by publishing alone, while not a request is lost, and can be explained and taken back', async () => {
    const admin = new Admin(stack);
    await admin.upload(endpoint, { 'model.onnx': scaleModel(1) });
    const model = { project: 'load', name: 'scale' };
    await admin.addEndpoint({ name: endpoint, model, traffic: { mode: 'progressive', policy } });
    await admin.untilServed(endpoint, 1, input);
    const headers = { authorization: `Bearer ${stack.adminKey}` };
    const url = `${stack.router.address}/serve/${endpoint}`;
    const load = new ConstantLoad(url, headers, JSON.stringify(input), 100).start();
    const path = `/rollouts?endpoint=${encodeURIComponent(endpoint)}`;
    const newest = async () => (await admin.must<{ items: Rollout[] }>('GET', path)).items[0];
    await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done));
    const hook = { name: 'e2e', url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/` };
    await admin.must('POST', '/webhooks', hook);
    try {
      await admin.upload(endpoint, { 'model.onnx': scaleModel(2) });
      await expect
        .poll(async () => (await newest())?.state, { timeout: 40_000, interval: 200, message: 'promoted' })
        .toBe('promoted');
      await admin.untilServed(endpoint, 2, input);
    } catch (error) {
      throw new Error(`${error}\n${JSON.stringify(await newest())}\n${await stack.logs()}`);
    } finally {
      await load.stop();
    }
    expect(load.replies.filter(({ status }) => status !== 200).slice(0, 3)).toEqual([]);
    const { id } = (await newest())!;
    const events = await admin.must<{ items: RolloutEvent[] }>('GET', `/rollouts/${id}/events?limit=100`);
    const types = events.items.map(({ type }) => type).filter((type) => type !== 'waiting');
    expect(types.slice(0, 3)).toEqual(['started', 'stage', 'step']);
    expect(types.at(-1)).toBe('promoted');
    const explained = await admin.must<Explanation>('GET', `/rollouts/${id}/explain`);
    expect(explained).toMatchObject({ agrees: true, event: { type: 'promoted' } });

    await admin.must('POST', `/rollouts/${id}/rollback`, { reason: 'customers complain' });
    await admin.untilServed(endpoint, 1, input);
    expect((await newest())!.state).toBe('rolled_back');
    await expect.poll(() => told.at(-1), { timeout: 10_000 }).toBe('rollout.rolled_back');
    const once = told.filter((type) => !['rollout.step', 'rollout.waiting'].includes(type));
    expect(once.slice(0, 3).sort()).toEqual(['deployment.ready', 'rollout.started', 'version.published']);
    expect(once.slice(3)).toContain('rollout.promoted');
  }, 90_000);
});
