import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { ConstantLoad } from '../support/load.ts';
import { scaleModel } from '../support/onnx.ts';
import { snapshotDatabase } from '../support/postgres.ts';
import { Stack } from '../support/stack.ts';

const input = { x: [[1, 2, 3, 4]] };

describe('a database restored from before the newest versions, while agents and routers run', () => {
  let stack: Stack;
  let admin: Admin;
  beforeAll(async () => {
    stack = await Stack.start();
    admin = new Admin(stack);
  });
  afterAll(() => stack?.stop());

  const upload = (factor: number) => admin.upload('back/scale', { 'model.onnx': scaleModel(factor) });

  it('unloads nothing by itself, loses no request, and gives no number twice', async () => {
    await upload(1);
    await admin.addEndpoint({ name: 'back/scale', model: { project: 'back', name: 'scale', maxVersions: 2 } });
    await admin.untilServed('back/scale', 1, input);
    const restore = await snapshotDatabase(stack.database);
    await upload(2);
    await admin.untilServed('back/scale', 2, input);
    await upload(3);
    await admin.untilServed('back/scale', 3, input);
    const models = async () => Object.keys((await admin.servers())[0]?.observed?.models ?? {});
    await expect.poll(async () => (await models()).length, { timeout: 30_000 }).toBe(2); // version 1 is retired
    const heldBefore = await models();

    const headers = { authorization: `Bearer ${stack.adminKey}` };
    const load = new ConstantLoad(
      `${stack.router.address}/serve/back/scale`,
      headers,
      JSON.stringify(input),
      50,
    ).start();
    await restore();
    await expect
      .poll(async () => (await admin.call<{ confirmed: boolean }>('GET', '/status')).body?.confirmed, {
        timeout: 60_000,
      })
      .toBe(false);
    await expect
      .poll(async () => (await admin.servers())[0]?.observed?.heldRemovals.length ?? 0, {
        timeout: 60_000,
        interval: 200,
      })
      .toBeGreaterThan(0);
    const held = await models();
    for (const name of heldBefore) expect(held).toContain(name);

    const next = await upload(4);
    expect(next.number).toBe(4);
    await admin.untilServed('back/scale', 4, input);
    await load.stop();
    const failed = load.replies.filter(({ status }) => status !== 200);
    expect(failed.slice(0, 3), failed.length > 0 ? await stack.logs() : '').toEqual([]);

    await admin.must('POST', '/fleet/confirm', {});
    await expect
      .poll(async () => (await models()).length, {
        timeout: 60_000,
        interval: 200,
      })
      .toBe(2);
  });
});
