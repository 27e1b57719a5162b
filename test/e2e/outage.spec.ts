import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrations } from '@perch/migrations';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../apps/cli/src/up/embedded-postgres.source.ts';
import { s3Environment } from '../../scripts/real-s3.mjs';
import { Admin } from '../support/admin.ts';
import { ConstantLoad, type Reply } from '../support/load.ts';
import { type RealS3, startS3 } from '../support/object-store.ts';
import { scaleModel } from '../support/onnx.ts';
import { missingReason } from '../support/real-parts.ts';
import { Stack } from '../support/stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const endpoint = 'out/scale';

describe.skipIf(missingReason('s3'))('Postgres and the object store killed and started again', () => {
  let folder: string;
  let postgres: EmbeddedPostgres;
  let s3: RealS3;
  let stack: Stack;
  let admin: Admin;

  const startPostgres = (port?: number) =>
    startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), logFile: join(folder, 'postgres.log'), port });

  const underLoad = async (work: () => Promise<void>): Promise<Reply[]> => {
    const headers = { authorization: `Bearer ${stack.adminKey}` };
    const load = new ConstantLoad(
      `${stack.router.address}/serve/${endpoint}`,
      headers,
      JSON.stringify(input),
      50,
    ).start();
    await work().finally(() => load.stop());
    expect(load.replies.length).toBeGreaterThan(0);
    return load.replies.filter(({ status }) => status !== 200).slice(0, 3);
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perch-outage-'));
    await chmod(folder, 0o711);
    [postgres, s3] = await Promise.all([startPostgres(), startS3()]);
    const database = { url: postgres.url, migrations, drop: async () => undefined, query: async () => [] };
    stack = await Stack.start({ database, store: s3Environment(s3) });
    admin = new Admin(stack);
    await admin.upload('out/scale', { 'model.onnx': scaleModel(1) });
    await admin.addEndpoint({ name: endpoint, model: { project: 'out', name: 'scale', maxVersions: 2 } });
    await admin.untilServed(endpoint, 1, input);
  });
  afterAll(async () => {
    await stack?.stop();
    await postgres?.stop();
    await s3?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('Postgres: requests go on, a change is refused with "try again" and loses nothing, publishing works after', async () => {
    const failed = await underLoad(async () => {
      process.kill(postgres.pid, 'SIGKILL');
      await postgres.ended;
      const refused = await admin.call<{ code: string; detail: string }>('POST', '/models/out/scale/versions', {
        files: [{ path: 'model.onnx', size: 1, sha256: 'a'.repeat(64) }],
      });
      expect(refused.status).toBe(503);
      expect(refused.body).toMatchObject({ code: 'unavailable', detail: expect.stringContaining('database') });
      postgres = await startPostgres(postgres.port);
      await expect.poll(async () => (await admin.call('GET', '/models')).status, { timeout: 30_000 }).toBe(200);
      await admin.upload('out/scale', { 'model.onnx': scaleModel(2) });
      await admin.untilServed(endpoint, 2, input);
    });
    expect(failed).toEqual([]);
  });

  it('object store: requests go on, an upload is refused and can be gone on with, publishing works after', async () => {
    const failed = await underLoad(async () => {
      await s3.kill();
      await expect(admin.upload('out/scale', { 'model.onnx': scaleModel(3) })).rejects.toThrow();
      await s3.restart();
      const { number } = await admin.upload('out/scale', { 'model.onnx': scaleModel(3) });
      await admin.untilServed(endpoint, number, input);
    });
    expect(failed).toEqual([]);
  });

  it('object store away between publishing and pulling: the version is served when it is back', async () => {
    await stack.agent.stop('SIGKILL');
    const { number } = await admin.upload('out/scale', { 'model.onnx': scaleModel(9) });
    await s3.kill();
    await stack.agent.start();
    expect((await admin.serve(endpoint, input)).status).toBe(200);
    await s3.restart();
    await admin.untilServed(endpoint, number, input, 60_000);
  });
});
