import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serverJoinKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';

let plane: TestControlPlane;
let server: { id: string; token: string };
beforeAll(async () => {
  plane = await startTestControlPlane();
  server = await enrol('s1', 's1:1');
});
afterAll(() => plane.close());

async function enrol(name: string, http: string) {
  const body = { kind: 'server', name, http, grpc: `${http}1` };
  return (await plane.call('POST', '/internal/v1/enrol', body, { key: serverJoinKey })).body;
}

describe('servers over HTTP', () => {
  it('are taken out of service and put back, by name or id, with a row for each', async () => {
    const drained = await plane.call('POST', '/api/v1/servers/s1/drain', { reason: 'new driver' });
    expect(drained.status).toBe(200);
    expect(drained.body).toMatchObject({
      id: server.id,
      models: [],
      drain: { by: 'bootstrap', reason: 'new driver', forced: false, drained: true, waitsFor: [] },
    });
    const again = await plane.call('POST', `/api/v1/servers/${server.id}/drain`, { force: true });
    expect(again.body.drain).toMatchObject({ forced: true, since: drained.body.drain.since });
    const list = await plane.call('GET', '/api/v1/servers');
    expect(list.body.items[0].drain).toMatchObject({ drained: true });
    const pools = await plane.call('GET', '/api/v1/pools');
    expect(pools.body.items).toMatchObject([{ servers: 1, live: 1, draining: 1, models: 0, ram: null }]);

    for (const _twice of [1, 2]) {
      const back = await plane.call('POST', '/api/v1/servers/s1/undrain', {});
      expect(back.body).toMatchObject({ drain: null });
    }
    const rows = await plane.database.query(
      `select action, actor from audit_log where action like 'server.%drain' order by entry`,
    );
    expect(rows.map(({ action, actor }) => [action, actor])).toEqual([
      ['server.drain', 'bootstrap (pk_bootstrap)'],
      ['server.drain', 'bootstrap (pk_bootstrap)'],
      ['server.undrain', 'bootstrap (pk_bootstrap)'],
    ]);
  });

  it('say what was asked wrongly', async () => {
    expect((await plane.call('POST', '/api/v1/servers/nobody/drain', {})).status).toBe(404);
    expect((await plane.call('GET', '/api/v1/servers/nobody')).status).toBe(404);
    const bad = await plane.call('POST', '/api/v1/servers/s1/drain', { because: 'x' });
    expect(bad.status).toBe(400);
    await enrol('s1', 'elsewhere:1');
    const several = await plane.call('POST', '/api/v1/servers/s1/drain', {});
    expect(several.status).toBe(409);
    expect(several.body.detail).toContain(server.id);
    expect((await plane.call('POST', `/api/v1/servers/${server.id}/drain`, {})).status).toBe(200);
  });

  it('are drained by operators, and seen by viewers', async () => {
    const { body: key } = await plane.call('POST', '/api/v1/keys', { name: 'onlooker', role: 'viewer' });
    const as = { key: key.secret };
    expect((await plane.call('GET', `/api/v1/servers/${server.id}`, undefined, as)).status).toBe(200);
    expect((await plane.call('GET', '/api/v1/pools', undefined, as)).status).toBe(200);
    expect((await plane.call('POST', `/api/v1/servers/${server.id}/drain`, {}, as)).status).toBe(403);
  });
});
