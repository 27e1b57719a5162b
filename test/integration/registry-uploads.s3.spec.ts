import { afterAll, describe, expect, it } from 'vitest';
import { type RealS3, s3Options, startS3 } from '../support/object-store.ts';
import { missingReason } from '../support/real-parts.ts';
import { fileOf, newBytes, publisher, send, startTestRegistry, upload } from '../support/registry.ts';
import { uploadSuite } from './registry-uploads.ts';

const reason = missingReason('s3');

describe.skipIf(reason)('with a real S3 server', () => {
  const servers: RealS3[] = [];
  const start = async () => {
    const server = await startS3();
    servers.push(server);
    const { bucket, prefix, ...s3 } = s3Options(server);
    return { server, options: { store: { url: `s3://${bucket}/${prefix}`, s3 } } };
  };
  afterAll(async () => {
    for (const server of servers) await server.stop();
  });

  uploadSuite('S3 (versitygw)', async () => (await start()).options);

  it('killed at any time: nothing changes while it is away, and all goes on when it is back', async () => {
    const { server, options } = await start();
    const test = await startTestRegistry(options);
    try {
      const bytes = newBytes();
      const { missing } = await test.registry.createVersion(publisher, 'p', 'm', { files: [fileOf('a', bytes)] });
      await send(missing[0]!, bytes);
      const before = await test.everything();
      await server.kill();
      const create = test.registry.createVersion(publisher, 'p', 'm', { files: [fileOf('a', newBytes())] });
      await expect(create).rejects.toMatchObject({ code: 'unavailable' });
      await expect(create).rejects.toThrow('versions/p/m/2');
      await expect(test.registry.completeVersion(publisher, 'p', 'm', 1)).rejects.toMatchObject({
        code: 'unavailable',
      });
      expect(await test.everything()).toEqual(before);
      await server.restart();
      expect(await test.registry.completeVersion(publisher, 'p', 'm', 1)).toMatchObject({ state: 'draft' });
      expect((await upload(test, 'p/m', { a: newBytes() })).number).toBeGreaterThanOrEqual(2);
    } finally {
      await test.close();
    }
  });

  it('wrong credentials are said to be that', async () => {
    const { options } = await start();
    const wrong = { ...options.store, s3: { ...options.store.s3, secretAccessKey: 'wrong-wrong-wrong' } };
    const test = await startTestRegistry({ store: wrong });
    try {
      const create = test.registry.createVersion(publisher, 'p', 'm', { files: [fileOf('a', newBytes())] });
      await expect(create).rejects.toThrow('refuses our credentials (403)');
    } finally {
      await test.close();
    }
  });
});
