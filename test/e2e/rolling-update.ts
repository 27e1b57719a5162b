import { expect } from 'vitest';
import { Admin } from '../support/admin.ts';
import { ConstantLoad, staleReplies } from '../support/load.ts';
import { scaleModel } from '../support/onnx.ts';
import type { Stack } from '../support/stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const endpoint = 'load/scale';

/** Version n multiplies by n, so that a reply proves which version really answered. */
async function publish(admin: Admin, number: number): Promise<void> {
  const version = await admin.upload('load/scale', { 'model.onnx': scaleModel(number) });
  expect(version.number).toBe(number);
}

/**
 * 50 requests a second on one endpoint while `versions` are published in a row with maxVersions 2: not one non-2xx, not
 * one reply from a version that was not live, and in the end exactly the newest two are held.
 */
export async function rollThrough(stack: Stack, versions: number): Promise<void> {
  const admin = new Admin(stack);
  await publish(admin, 1);
  await admin.addEndpoint({ name: endpoint, model: { project: 'load', name: 'scale', maxVersions: 2 } });
  await admin.untilServed(endpoint, 1, input);

  const load = new ConstantLoad(
    `${stack.router.address}/serve/${endpoint}`,
    { authorization: `Bearer ${stack.adminKey}` },
    JSON.stringify(input),
    50,
  ).start();
  try {
    for (let number = 2; number <= versions; number += 1) {
      await publish(admin, number);
      await admin.untilServed(endpoint, number, input);
    }
  } finally {
    await load.stop();
  }

  const bad = load.replies.filter(({ status }) => status < 200 || status > 299);
  expect(bad.slice(0, 3), await (bad.length > 0 ? stack.logs() : '')).toEqual([]);
  expect(load.replies.length).toBeGreaterThan(versions * 2);
  const wrong = load.replies.filter(
    ({ version, body }) =>
      !body.replaceAll(/\s/g, '').includes(`${version},${2 * version},${3 * version},${4 * version}`),
  );
  expect(wrong.slice(0, 3)).toEqual([]);
  expect(staleReplies(load.replies).slice(0, 3)).toEqual([]);
  await untilHeld(admin, [versions, versions - 1]);
}

/** What is deployed, and what the server really holds, is the newest two and nothing else. */
async function untilHeld(admin: Admin, versions: number[]): Promise<void> {
  await expect
    .poll(
      async () => {
        const { deployments } = await admin.endpoint(endpoint);
        const live = deployments
          .filter(({ state }) => state !== 'retired')
          .map(({ version, state }) => `${version} ${state}`);
        const held = Object.keys((await admin.servers())[0]?.observed?.models ?? {}).length;
        return { live: live.sort(), held };
      },
      { timeout: 60_000, interval: 200 },
    )
    .toEqual({ live: versions.map((version) => `${version} ready`).sort(), held: versions.length });
}
