import { createTritonControl, type TritonControl } from '@perch/triton/control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acceptedTexts, refusedTexts } from '../support/config-texts.ts';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, putModel, startTriton } from '../support/real-triton.ts';

describe.skipIf(missingReason('triton'))('the texts our parser is held to, on a real Triton', () => {
  let server: ModelServer;
  let control: TritonControl;
  beforeAll(async () => {
    server = await startTriton({ id: 'texts' });
    control = createTritonControl({ grpc: server.grpc });
  });
  afterAll(async () => {
    control?.close();
    await server?.remove();
  });

  /** Why the server did not take a configuration: its own log line. The name at the end makes every one of them fail. */
  async function reasonOf(model: string, text: string): Promise<string> {
    await putModel(server.repository, model, { config: `${text}\nname: "another"\n`, versions: { 1: undefined } });
    await expect(control.load(model)).rejects.toThrow(/failed to poll from model repository/);
    const line = new RegExp(`Poll failed for model directory '${model}': (.*)`);
    let reason = '';
    await expect
      .poll(async () => {
        reason = line.exec(await server.tail(50))?.[1] ?? '';
        return reason;
      })
      .not.toBe('');
    return reason;
  }

  it('are taken, every one', async () => {
    for (const [index, text] of acceptedTexts.entries())
      expect(await reasonOf(`taken-${index}`, text), text).not.toMatch(/failed to read text proto/);
  });

  it('are refused, every one', async () => {
    for (const [index, text] of refusedTexts.entries())
      expect(await reasonOf(`refused-${index}`, text), text).toMatch(/failed to read text proto/);
  });
});
