import { afterAll, beforeAll, describe, it } from 'vitest';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, startTriton } from '../support/real-triton.ts';
import { Stack } from '../support/stack.ts';
import { rollThrough } from './rolling-update.ts';

describe.skipIf(missingReason('triton'))('rolling updates under load on the real Triton', () => {
  let triton: ModelServer;
  let stack: Stack;
  beforeAll(async () => {
    // Without auto-completion Triton serves only what the written config.pbtxt says in full.
    triton = await startTriton({ extra: ['--disable-auto-complete-config'] });
    stack = await Stack.start({ triton: { http: triton.http, grpc: triton.grpc, repository: triton.repository } });
  });
  afterAll(async () => {
    await stack?.stop();
    await triton?.remove();
  });

  it('publishes 30 versions in a row and loses no request', () => rollThrough(stack, 30));
});
