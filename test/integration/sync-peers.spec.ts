import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256Hex } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { serverJoinKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
import { scaleModel } from '../support/onnx.ts';
import { Program } from '../support/stack.ts';
import { engineServer, type ModelServer } from './sync-stand.ts';

const until = (check: () => unknown) => vi.waitFor(check, { timeout: 50_000, interval: 50 });

/** Two agents with a model server each, behind the real control plane. */
describe('agents that let their neighbours read their caches', () => {
  let plane: TestControlPlane;
  let folder: string;
  const servers: ModelServer[] = [];
  const agents: Program[] = [];
  beforeAll(async () => {
    plane = await startTestControlPlane();
    folder = await mkdtemp(join(tmpdir(), 'perch-peers-'));
  });
  afterAll(async () => {
    for (const agent of agents) await agent.stop('SIGKILL');
    for (const server of servers) await server.kill('SIGKILL');
    await plane?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const start = async (name: string, env: Record<string, string> = {}) => {
    const server = await engineServer(join(folder, name));
    servers.push(server);
    await server.start();
    const settings = {
      PERCH_LISTEN: '127.0.0.1:0',
      PERCH_PEER_LISTEN: '127.0.0.1:0',
      PERCH_CONTROL_URL: plane.address,
      PERCH_JOIN_KEY: serverJoinKey,
      PERCH_DATA_DIR: join(folder, name, 'data'),
      PERCH_TRITON_HTTP: server.http,
      PERCH_TRITON_GRPC: server.grpc,
      PERCH_TRITON_REPOSITORY: server.repository,
      PERCH_NAME: name,
      ...env,
    };
    agents.push(await new Program(name, 'agent', settings, join(folder, `${name}.log`)).start());
  };
  const blobsOf = (name: string) => readdir(join(folder, name, 'data/cache/blobs'));
  const served = async (name: string) => {
    const { body } = await plane.call('GET', '/api/v1/servers');
    const models = body.items.find((server: { name: string }) => server.name === name)?.observed?.models ?? {};
    return Object.values(models as Record<string, { state: string }>).map(({ state }) => state);
  };

  it('brings a model to a second server while the store has lost it', async () => {
    await start('first', { PERCH_PEERS: 'on' });
    const bytes = scaleModel(4);
    const sha256 = sha256Hex(bytes);
    const files = [{ path: 'model.onnx', sha256, size: bytes.length }];
    const { body: upload } = await plane.call('POST', '/api/v1/models/p/near/versions', { files });
    const [{ url, headers }] = upload.missing;
    expect((await fetch(url, { method: 'PUT', body: Buffer.from(bytes), headers })).status).toBe(200);
    for (const verb of ['complete', 'publish'])
      expect((await plane.call('POST', `/api/v1/models/p/near/versions/1/${verb}`, {})).status).toBe(200);
    const spec = { name: 'near', model: { project: 'p', name: 'near' }, fleet: { pool: 'default', replicas: 2 } };
    expect((await plane.call('POST', '/api/v1/endpoints', spec)).status).toBe(201);
    await until(async () => expect(await served('first')).toEqual(['ready']));

    await rm(join(plane.storeFolder, 'objects', 'blobs'), { recursive: true });
    await start('second', { PERCH_PEERS: 'on' });
    await until(async () => expect(await served('second')).toEqual(['ready']));
    expect(await blobsOf('second')).toEqual([sha256]);
    expect(await readFile(join(folder, 'second/data/cache/blobs', sha256))).toEqual(Buffer.from(bytes));
  }, 120_000);

  it('lets nobody read without a signature, and keeps to itself by default', async () => {
    const { body } = await plane.call('GET', '/api/v1/servers');
    const { peer } = body.items.find(({ name }: { name: string }) => name === 'first').observed;
    const [hash] = await blobsOf('first');
    for (const query of ['', `?expires=${Date.now() + 60_000}&signature=${'0'.repeat(64)}`])
      expect((await fetch(`${peer}/peer/blobs/${hash}${query}`)).status).toBe(403);
    await start('third');
    await until(async () => {
      const { body: now } = await plane.call('GET', '/api/v1/servers');
      const third = now.items.find(({ name }: { name: string }) => name === 'third');
      expect(third.observed).toBeTruthy();
      expect(third.observed).not.toHaveProperty('peer');
    });
  });
});
