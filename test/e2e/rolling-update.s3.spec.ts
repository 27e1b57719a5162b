import { afterAll, beforeAll, describe, it } from 'vitest';
import { s3Environment } from '../../scripts/real-s3.mjs';
import { type RealS3, startS3 } from '../support/object-store.ts';
import { missingReason } from '../support/real-parts.ts';
import { Stack } from '../support/stack.ts';
import { rollThrough } from './rolling-update.ts';

describe.skipIf(missingReason('s3'))('rolling updates under load on a real S3 server', () => {
  let s3: RealS3;
  let stack: Stack;
  beforeAll(async () => {
    s3 = await startS3();
    stack = await Stack.start({ store: s3Environment(s3) });
  });
  afterAll(async () => {
    await stack?.stop();
    await s3?.stop();
  });

  it('publishes 10 versions in a row and loses no request', () => rollThrough(stack, 10));
});
