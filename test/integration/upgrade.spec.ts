import { endpointSpec } from '@perch/contracts';
import { migrate, migrateDown } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrations } from '../../migrations/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

/** How many migrations the first release had. */
const released = 5;
const hash = 'a'.repeat(64);
const engine = { platform: 'onnxruntime_onnx', backend: 'onnxruntime', maxBatchSize: 0, instances: [], config: null };
const files = [{ path: '1/model.onnx', sha256: hash, size: 3 }];
const spec = { kind: 'Endpoint', name: 'a', model: { project: 'p', name: 'm' }, fleet: { pool: 'gpu', replicas: 2 } };

/** What the first release stored, as it stored it. */
const oldRows: [string, unknown[]][] = [
  [
    `insert into endpoints (name, generation, spec, status, updated_by) values ('a', 1, $1, '{}', 'me'), ('gone', 2, null, '{}', 'me')`,
    [JSON.stringify(spec)],
  ],
  [
    `insert into deployments (id, endpoint, generation, project, model, version, digest, source_digest, triton_model, body, state)
     values ('00000000-0000-4000-8000-000000000001', 'a', 1, 'p', 'm', 1, 'd', 's', 'm-v1-aaaaaaaaaaaa', $1, 'ready'),
            ('00000000-0000-4000-8000-000000000002', 'a', 1, 'p', 'm', 2, 'e', 't', 'm-v2-bbbbbbbbbbbb', 'null', 'failed')`,
    [JSON.stringify({ identity: 'i', engine, files, processing: { builtin: 'passthrough', options: {} }, processingFiles: [] })],
  ],
]; // biome-ignore format: rows

describe('a database of the first release', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase({ migrated: false });
    await migrate(database);
    for (let n = released; n < migrations.length; n += 1) await migrateDown(database);
    for (const [statement, values] of oldRows) await database.query(statement, values);
  });
  afterAll(() => database.drop());

  const bodies = async () =>
    (await database.query('select body from deployments order by version')).map(({ body }) => body);

  it('is read by this one: ways to run, and every default written out', async () => {
    const before = await bodies();
    await migrate(database);
    const [body, faulty] = await bodies();
    expect(body.variants).toEqual([
      {
        tritonModel: 'm-v1-aaaaaaaaaaaa',
        model: { engine, files, digest: 'i' },
        needs: [],
        requires: { backend: 'onnxruntime', gpu: false, tensorrt: null, onnx: null, memoryBytes: null },
      },
    ]);
    expect(faulty).toBeNull();
    const stored = await database.query('select spec from endpoints order by name');
    expect(stored[0]!['spec']).toMatchObject({ fleet: { pool: 'gpu', replicas: 2, minReplicas: 1 }, stopped: false });
    expect(endpointSpec.parse(stored[0]!['spec'])).toMatchObject(stored[0]!['spec']);
    expect(stored[1]!['spec']).toBeNull();

    for (let n = released; n < migrations.length; n += 1) await migrateDown(database);
    expect(await bodies()).toEqual(before);
    await migrate(database);
    expect((await bodies())[0].variants).toHaveLength(1);
  });
});
