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

describe('who may call', () => {
  it('says who the caller is', async () => {
    const { secret, id } = await newKey({ name: 'ci', role: 'publisher', projects: ['nlp'] });
    const { status, body } = await plane.call('GET', '/api/v1/keys', undefined);
    expect(status).toBe(200);
    expect(body.items.map((key: { id: string }) => key.id)).toContain(id);
    expect(JSON.stringify(body)).not.toContain(secret);
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
    expect((await plane.call('GET', '/api/v1/keys', undefined, { key: secret })).status).toBe(200);
    expect((await plane.call('DELETE', `/api/v1/keys/${id}`)).status).toBe(204);
    await expect
      .poll(async () => (await plane.call('GET', '/api/v1/keys', undefined, { key: secret })).body.detail)
      .toContain('was revoked');
    expect((await plane.call('DELETE', `/api/v1/keys/${id}`)).status).toBe(204);
    expect((await plane.call('DELETE', '/api/v1/keys/pk_nobody')).body).toMatchObject({ code: 'not_found' });
  });
});
