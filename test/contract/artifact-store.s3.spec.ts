import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { S3Store } from '@perch/registry';
import { describe, expect, it } from 'vitest';
import { openTestS3, s3Options, startS3 } from '../support/object-store.ts';
import { missingReason } from '../support/real-parts.ts';
import { artifactStoreContract } from './artifact-store.contract.ts';

const reason = missingReason('s3');

describe.skipIf(reason)('on a real S3 server', () => {
  artifactStoreContract('S3 (versitygw)', async () => {
    const server = await startS3();
    return { store: openTestS3(server), close: () => server.stop() };
  });

  it('a body over the limit of a single PUT goes in parts, and is hashed by us', async () => {
    const server = await startS3();
    try {
      const store = new S3Store({ ...s3Options(server), largestPutBytes: 1_000 });
      const bytes = randomBytes(100_000);
      const known = { sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
      await store.put('good', Readable.from([bytes]), known);
      expect(await store.head('good')).toMatchObject({ sizeBytes: bytes.length });
      const other = Readable.from([randomBytes(100_000)]);
      await expect(store.put('bad', other, known)).rejects.toMatchObject({ code: 'integrity' });
      expect(await store.head('bad')).toBeUndefined();
    } finally {
      await server.stop();
    }
  });
});
