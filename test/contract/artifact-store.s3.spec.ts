import { describe } from 'vitest';
import { openTestS3, startS3 } from '../support/object-store.ts';
import { missingReason } from '../support/real-parts.ts';
import { artifactStoreContract } from './artifact-store.contract.ts';

const reason = missingReason('s3');

describe.skipIf(reason)('on a real S3 server', () => {
  artifactStoreContract('S3 (versitygw)', async () => {
    const server = await startS3();
    return { store: openTestS3(server), close: () => server.stop() };
  });
});
