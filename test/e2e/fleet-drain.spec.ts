import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RoutingTable, Server } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { FleetStack } from '../support/fleet-stack.ts';
import { scaleModel } from '../support/onnx.ts';
import { missingReason } from '../support/real-parts.ts';
import { FleetUnderLoad } from './rolling-update.fleet.ts';

const cli = join(import.meta.dirname, '../../apps/cli/dist/main.js');
const replicas = { 'drain/scale': 2, 'drain/alone': 1 };

/** How many servers each endpoint had in every table that a router could have followed. */
async function fewestServers(stack: FleetStack, stopped: () => boolean): Promise<Record<string, number>> {
  const fewest: Record<string, number> = {};
  const identity = JSON.parse(await readFile(join(stack.folder, 'router-a/identity.json'), 'utf8'));
  while (!stopped()) {
    const answer = await fetch(`${stack.controlPlane.address}/internal/v1/routing-table?wait=0`, {
      headers: { authorization: `Bearer ${identity.token}` },
    });
    const { document } = (await answer.json()) as { document: RoutingTable };
    for (const [name, { targets }] of Object.entries(document.endpoints))
      for (const { servers } of targets)
        fewest[name] = Math.min(fewest[name] ?? Number.POSITIVE_INFINITY, servers.length);
    await new Promise((next) => setTimeout(next, 20));
  }
  return fewest;
}

describe.skipIf(missingReason('triton'))('a server drained under load, on real Tritons', () => {
  let stack: FleetStack;
  beforeAll(async () => {
    stack = await FleetStack.start({ servers: 3, routers: 2 });
  });
  afterAll(() => stack?.stop());

  it('gets no request once the command has returned, and no endpoint has fewer servers on the way', async () => {
    const fleet = new FleetUnderLoad(stack, 'drain/scale', 40);
    const admin = new Admin(stack);
    await admin.upload('drain/alone', { 'model.onnx': scaleModel(1_000) });
    await admin.addEndpoint({ name: 'drain/alone', model: { project: 'drain', name: 'alone' } });
    await admin.untilServed('drain/alone', 1, { x: [[1, 2, 3, 4]] });
    await fleet.begin({ replicas: 2, minReplicas: 2 });

    let stopped = false;
    const watched = fewestServers(stack, () => stopped);
    watched.catch(() => undefined); // told below
    for (const { name } of stack.servers) {
      await perch(stack, 'fleet', 'drain', name, '--wait=120s');
      const drainedAtMs = Date.now();
      const { drain } = (await admin.servers()).find((one) => one.name === name) as Server;
      expect(drain).toMatchObject({ drained: true });
      const before = fleet.load.replies.length;
      await expect.poll(() => fleet.load.replies.length, { timeout: 60_000 }).toBeGreaterThan(before + 80);
      for (const link of ['http', 'grpc'])
        expect(stack.link(`${name}-${link}`).lastSentAtMs, `${name} ${link}`).toBeLessThanOrEqual(drainedAtMs);
      await perch(stack, 'fleet', 'undrain', name);
    }
    stopped = true;
    expect(await watched).toEqual(replicas);
    await fleet.settle();
  });
});

async function perch(stack: FleetStack, ...words: string[]): Promise<string> {
  const env = { ...process.env, PERCH_URL: stack.controlPlane.address, PERCH_API_KEY: stack.adminKey };
  const { stdout } = await promisify(execFile)(process.execPath, [cli, ...words], {
    env: { ...env, PERCH_CONFIG_DIR: join(stack.folder, 'cli') },
    timeout: 150_000,
  }).catch(async (error) => {
    throw new Error(`perch ${words.join(' ')}: ${error.stderr}\n${await stack.logs()}`);
  });
  return stdout;
}
