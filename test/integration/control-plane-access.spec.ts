import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adminKey, startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';

let plane: TestControlPlane;
beforeAll(async () => {
  plane = await startTestControlPlane();
});
afterAll(() => plane.close());

const newKey = async (wanted: Record<string, unknown>) => {
  const { status, body } = await plane.call('POST', '/api/v1/keys', { name: 'test', ...wanted });
  expect(status).toBe(201);
  return body as { id: string; secret: string };
};
const whoami = (key: string) => plane.call('GET', '/api/v1/whoami', undefined, { key });

describe('who may call', () => {
  it('says who the caller is, and never shows a secret again', async () => {
    const { secret, id } = await newKey({ name: 'ci', role: 'publisher', projects: ['nlp'] });
    expect(await whoami(secret)).toMatchObject({
      status: 200,
      body: { id, name: 'ci', role: 'publisher', projects: ['nlp'], endpoints: [] },
    });
    const { body } = await plane.call('GET', '/api/v1/keys');
    expect(body.items.map((key: { id: string }) => key.id)).toContain(id);
    expect(JSON.stringify(body)).not.toContain(secret);
    const stored = JSON.stringify(await plane.database.query('select * from api_keys'));
    expect(stored).not.toContain(secret);
    expect(stored).not.toContain(adminKey);
  });

  it.each([
    ['no key', ''],
    ['an unknown key', 'pk_000000000000_000000'],
    ['a part of a key', adminKey.slice(0, -1)],
  ])('%s is 401 and tells how to get in', async (_name, key) => {
    const { status, body, headers } = await plane.call('GET', '/api/v1/keys', undefined, { key });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toBe('Bearer');
    expect(headers.get('content-type')).toContain('application/problem+json');
    expect(body).toMatchObject({ code: 'unauthenticated', status: 401, requestId: headers.get('x-request-id') });
  });

  it('a revoked key is 401 at once, although it was believed before', async () => {
    const { id, secret } = await newKey({ role: 'admin' });
    expect((await whoami(secret)).status).toBe(200);
    expect((await plane.call('DELETE', `/api/v1/keys/${id}`)).status).toBe(204);
    await expect.poll(async () => (await whoami(secret)).body.detail).toContain('was revoked');
    expect((await whoami(secret)).status).toBe(401);
    expect((await plane.call('DELETE', `/api/v1/keys/${id}`)).status).toBe(204);
    expect((await plane.call('DELETE', '/api/v1/keys/pk_nobody')).body).toMatchObject({ code: 'not_found' });
  });

  it('a key that ran out is 401 and says when; one that never was good is refused', async () => {
    const { id, secret } = await newKey({ role: 'viewer', expiresAt: new Date(Date.now() + 3_600_000).toISOString() });
    await plane.database.query(`update api_keys set expires_at = now() - interval '1 minute' where id = $1`, [id]);
    expect(await whoami(secret)).toMatchObject({
      status: 401,
      body: { detail: expect.stringContaining('ran out at') },
    });
    const past = { name: 'x', role: 'viewer', expiresAt: '2020-01-01T00:00:00Z' };
    expect((await plane.call('POST', '/api/v1/keys', past)).body.detail).toContain('expiresAt: 2020');
  });

  it.each([
    ['inference', 'GET', '/api/v1/models', 403],
    ['viewer', 'GET', '/api/v1/models', 200],
    ['viewer', 'POST', '/api/v1/models/nlp/m/versions', 403],
    ['publisher', 'POST', '/api/v1/models/nlp/m/versions', 400],
    ['publisher', 'GET', '/api/v1/audit', 403],
    ['operator', 'POST', '/api/v1/keys', 403],
    ['admin', 'GET', '/api/v1/audit', 200],
  ])('%s %s %s is %i', async (role, method, path, status) => {
    const { secret } = await newKey({ name: `a ${role}`, role });
    const before = await plane.database.query('select count(*) from audit_log');
    const answer = await plane.call(method, path, method === 'POST' ? {} : undefined, { key: secret });
    expect(answer.status).toBe(status);
    if (status === 403)
      expect(answer.body.detail).toBe(
        `key a ${role} has the role ${role}; this wants ${wantedBy(path, method)} or more`,
      );
    expect(await plane.database.query('select count(*) from audit_log')).toEqual(before);
  });
  const wantedBy = (path: string, method: string) =>
    path.includes('/models') ? (method === 'POST' ? 'publisher' : 'viewer') : 'admin';

  it('a key of one project is kept out of the others', async () => {
    const { secret } = await newKey({ name: 'nlp only', role: 'publisher', projects: ['nlp'] });
    const at = (project: string) =>
      plane.call('GET', `/api/v1/models/${project}/m/versions`, undefined, { key: secret });
    expect((await at('nlp')).status).not.toBe(403);
    expect(await at('cv')).toMatchObject({ status: 403, body: { detail: 'key nlp only is not scoped to project cv' } });
  });

  it('the use of a key is noted, coarsely', async () => {
    const { id, secret } = await newKey({ role: 'viewer' });
    await whoami(secret);
    const used = () => plane.database.query('select last_used_at from api_keys where id = $1', [id]);
    await expect.poll(async () => (await used())[0]!['last_used_at']).not.toBeNull();
  });

  it('keys are listed in pages', async () => {
    for (let n = 0; n < 3; n += 1) await newKey({ role: 'viewer' });
    const all = (await plane.call('GET', '/api/v1/keys?limit=500')).body.items.map((key: { id: string }) => key.id);
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body }: { body: { items: { id: string }[]; nextCursor: string | null } } = await plane.call(
        'GET',
        `/api/v1/keys?limit=2${cursor ? `&cursor=${cursor}` : ''}`,
      );
      seen.push(...body.items.map((key) => key.id));
      cursor = body.nextCursor;
    }
    expect(seen).toEqual(all);
    expect((await plane.call('GET', '/api/v1/keys?cursor=zzz')).body.detail).toContain('cursor: not one that');
    expect((await plane.call('GET', '/api/v1/keys?limit=0')).body.errors).toEqual([
      { path: 'limit', message: expect.any(String) },
    ]);
  });

  it('a change of a key asks for a new routing table, in which every usable key stands as a hash', async () => {
    const { id } = await newKey({ role: 'inference', endpoints: ['text/*'] });
    const { KeyService } = await import('@perch/access');
    const listed = await plane.app.get(KeyService).inferenceKeys();
    expect(listed.find((key) => key.id === id)).toEqual({
      id,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      endpoints: ['text/*'],
    });
    await plane.call('DELETE', `/api/v1/keys/${id}`);
    expect((await plane.app.get(KeyService).inferenceKeys()).map((key) => key.id)).not.toContain(id);
  });
});

describe('join keys', () => {
  it('name what they let in, are found by their secret only, and are gone when revoked', async () => {
    const { JoinKeyService } = await import('@perch/access');
    const keys = plane.app.get(JoinKeyService);
    const wanted = { name: 'gpu boxes', joins: 'server', pool: 'gpu' };
    const { status, body } = await plane.call('POST', '/api/v1/join-keys', wanted);
    expect(status).toBe(201);
    expect(await keys.find(body.secret)).toEqual({ id: body.id, joins: 'server', pool: 'gpu' });
    expect(await keys.find(body.id)).toBeNull();
    expect((await whoami(body.secret)).status).toBe(401);
    expect((await plane.call('DELETE', `/api/v1/join-keys/${body.id}`)).status).toBe(204);
    expect(await keys.find(body.secret)).toBeNull();
    expect((await plane.call('GET', '/api/v1/join-keys')).body.items).toContainEqual(
      expect.objectContaining({ id: body.id, role: 'join-server', pool: 'gpu', revokedAt: expect.any(String) }),
    );
  });
});

describe('bad requests', () => {
  const post = (body: string | Record<string, unknown>, headers?: Record<string, string>) =>
    plane.call('POST', '/api/v1/keys', body, { headers });

  it.each([
    ['broken JSON', '{"name": ', {}, 400, 'JSON'],
    ['an empty body', '', {}, 400, ''],
    ['another content type', '<xml/>', { 'content-type': 'text/xml' }, 415, 'text/xml'],
    ['an unknown role', { name: 'x', role: 'god' }, {}, 400, 'request body: role'],
    ['an admin with scopes', { name: 'x', role: 'admin', projects: ['nlp'] }, {}, 400, 'role: an admin makes keys'],
    ['an unknown field', { name: 'x', role: 'viewer', colour: 1 }, {}, 400, 'colour'],
    ['NUL in a name', { name: 'a\u0000b', role: 'viewer' }, {}, 400, 'NUL'],
    ['a body that is too large', { name: 'x'.repeat(5 * 1024 * 1024), role: 'viewer' }, {}, 413, 'large'],
    ['a body that is a list', '[]', {}, 400, 'request body'],
    ['poisoned JSON', '{"__proto__": {"role": "admin"}, "name": "x"}', {}, 400, ''],
  ])('%s is named and changes nothing', async (_name, body, headers, status, words) => {
    const before = await plane.database.query('select count(*) from api_keys');
    const answer = await post(body as string, headers as Record<string, string>);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(answer.body.detail).toContain(words);
    expect(answer.body.requestId).toBe(answer.headers.get('x-request-id'));
    expect(JSON.stringify(answer.body)).not.toMatch(/node_modules|at \w+ \(|select |insert /);
    expect(await plane.database.query('select count(*) from api_keys')).toEqual(before);
  });

  it.each([
    ['GET', '/nothing', ''],
    ['GET', '/api/v1/nothing?secret=1', ''],
    ['PUT', '/api/v1/keys', ''],
  ])('%s %s is a 404 problem', async (method, path) => {
    const { status, body, headers } = await plane.call(method, path);
    expect([status, body.code]).toEqual([404, 'not_found']);
    expect(headers.get('content-type')).toContain('application/problem+json');
    expect(body.detail).toBe(`there is no route ${method} ${path.split('?')[0]}`);
  });

  it('the request id of the caller is kept when it is one', async () => {
    const ask = (id: string) => plane.call('GET', '/api/v1/whoami', undefined, { headers: { 'x-request-id': id } });
    expect((await ask('trace-1:2')).headers.get('x-request-id')).toBe('trace-1:2');
    expect((await ask('{"a":1}')).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('says nothing of what runs inside', async () => {
    const { headers } = await plane.call('GET', '/api/v1/whoami');
    expect(headers.get('x-powered-by')).toBeNull();
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });
});

describe('what the program shows of itself', () => {
  it('is live and ready, and counts its requests', async () => {
    expect((await plane.call('GET', '/health/live', undefined, { key: '' })).status).toBe(200);
    expect((await plane.call('GET', '/health/ready', undefined, { key: '' })).body).toMatchObject({
      ready: true,
      checks: { database: { up: true } },
    });
    const metrics = await (await fetch(`${plane.address}/metrics`)).text();
    expect(metrics).toMatch(/perch_admin_requests_total\{method="GET",route="\/api\/v1\/whoami",status="200"\} \d/);
    expect(metrics).toContain('perch_admin_request_duration_seconds_bucket');
  });

  it('status names version and lineage', async () => {
    expect((await plane.call('GET', '/api/v1/status')).body).toMatchObject({
      version: '0.1.0',
      lineage: expect.stringMatching(/^[0-9a-f-]{36}$/),
      confirmed: true,
    });
  });
});
