import { afterAll, beforeAll, describe, it } from 'vitest';
import { Stack } from '../support/stack.ts';
import { rollThrough } from './rolling-update.ts';

describe('rolling updates under load on the embedded engine', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await Stack.start();
  });
  afterAll(() => stack?.stop());

  it('publishes 30 versions in a row and loses no request', () => rollThrough(stack, 30));
});
