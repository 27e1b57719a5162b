import { afterAll, describe } from 'vitest';
import { type RealS3, s3Options, startS3 } from '../support/object-store.ts';
import { missingReason } from '../support/real-parts.ts';
import { modulesSuite } from './registry-modules.ts';

const reason = missingReason('s3');

describe.skipIf(reason)('with a real S3 server', () => {
  let server: RealS3 | undefined;
  afterAll(() => server?.stop());
  modulesSuite('S3 (versitygw)', async () => {
    server = await startS3();
    const { bucket, prefix, ...s3 } = s3Options(server);
    return { store: { url: `s3://${bucket}/${prefix}`, s3 } };
  });
});
