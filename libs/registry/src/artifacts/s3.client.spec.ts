import { AppError } from '@perch/contracts';
import { Metrics } from '@perch/platform';
import { describe, expect, it } from 'vitest';
import { base64OfHex, hexOfBase64, S3Calls, secondsUntil } from './s3.client.ts';

const failing = (status: number | undefined) => () =>
  Promise.reject(
    Object.assign(new Error('<xml>secret</xml>'), { name: 'Whatever', $metadata: { httpStatusCode: status } }),
  );

describe('calls to an S3 server', () => {
  it.each([
    [400, 'integrity'],
    [401, 'unavailable'],
    [403, 'unavailable'],
    [404, 'not_found'],
    [416, 'invalid'],
    [500, 'unavailable'],
    [503, 'unavailable'],
    [507, 'no_space'],
    [undefined, 'unavailable'],
  ])('status %s is %s and names the object', async (status, code) => {
    const call = new S3Calls().run('put', 'object a/b', failing(status));
    await expect(call).rejects.toMatchObject({ code });
    await expect(call).rejects.toThrow('object a/b');
  });

  it('an expected status is an answer, ours an error as it stands', async () => {
    const calls = new S3Calls();
    expect(await calls.find('head', 'x', [404], failing(404))).toBeUndefined();
    const own = new AppError('too_large', 'mine');
    await expect(calls.run('put', 'x', () => Promise.reject(own))).rejects.toBe(own);
    expect(await calls.run('get', 'x', async () => 7)).toBe(7);
  });

  it('are counted by outcome', async () => {
    const metrics = new Metrics();
    const calls = new S3Calls(metrics);
    await calls.run('put', 'x', failing(500)).catch(() => undefined);
    await calls.run('put', 'x', async () => 1);
    const { body } = await metrics.render();
    expect(body).toContain('perch_store_calls_total{call="put",outcome="unavailable"} 1');
    expect(body).toContain('perch_store_calls_total{call="put",outcome="ok"} 1');
  });
});

describe('checksums and times', () => {
  const hex = 'ab'.repeat(32);
  it('goes there and back', () => expect(hexOfBase64(base64OfHex(hex))).toBe(hex));
  it.each([[undefined], [''], [`${base64OfHex(hex)}-3`], ['AAAA']])('%s proves nothing', (text) =>
    expect(hexOfBase64(text)).toBeUndefined(),
  );
  it.each([
    [500, 1],
    [90_400, 90],
    [-5, 1],
    [10 ** 12, 604_800],
  ])('%s ms from now is %s s', (ms, seconds) =>
    expect(secondsUntil(new Date(1_000_000 + ms), 1_000_000)).toBe(seconds),
  );
});
