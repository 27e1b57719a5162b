import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { moduleOf } from '../../bench/modules.mjs';
import { armOf, CanaryStand, failing, floats, paths, right } from './canary-stand.ts';
import type { Act } from './scripted-server.ts';

let at: CanaryStand;
beforeAll(async () => {
  at = await CanaryStand.start();
});
afterAll(() => at?.stop());

const shadow = { sample: 1, compare: { by: 'auto' as const, absolute: 1e-3, relative: 1e-2, least: 0.99 } };

describe.concurrent('a candidate in the shadow', () => {
  it.each(paths)(
    'gets copies of %s behind the replies, and its answers are compared and dropped',
    async (_path, send) => {
      const trial = await at.trial({ share: 0, rollout: { shadow } });
      const sendUntilAsked = async (act: Act) => {
        trial.answers(act);
        for (const before = trial.asked; trial.asked === before; ) {
          const answer = await send(trial);
          expect([armOf(answer), /[59]/.test(answer.text)]).toEqual(['200 1 stable', false]);
        }
      };
      for (const act of [right, floats([9, 2, 3, 4]), floats([5, Number.NaN, 3, 4]), failing])
        await sendUntilAsked(act);
      const all = await trial.pairs(({ discordant }) => discordant['error'] !== undefined);
      expect([all.agree > 0, all.compared > all.agree, all.pairs > all.compared]).toEqual([true, true, true]);
      const onlyCandidate = { stable: 0, candidate: expect.any(Number) };
      expect(all.discordant).toEqual({ error: onlyCandidate, contract: onlyCandidate });
      expect(trial.told!.candidate.ended['error']?.n ?? 0).toBe(0);
    },
  );

  it('never holds a reply up, however it hangs: live requests go on, copies beyond four are dropped', async () => {
    const open: ServerResponse[] = [];
    const trial = await at.trial(
      { share: 0, rollout: { shadow }, route: { timeoutMs: 60_000 } },
      (_request, response) => void open.push(response),
    );
    // were one reply to wait for a copy, this would end at the first: no copy is answered before the last reply
    for (let i = 0; i < 60; i += 1) expect((await trial.infer()).status).toBe(200);
    expect(at.stable.countOf(`${trial.name}-s`)).toBe(60);
    expect(open.length).toBeLessThanOrEqual(4);
    const { pairs } = await trial.pairs(({ dropped }) => dropped >= 56);
    expect(pairs).toBe(0);
    for (const response of open) right(response.req, response, Buffer.alloc(0));
    expect(await trial.pairs((all) => all.pairs === open.length)).toEqual({
      pairs: open.length,
      agree: open.length,
      compared: open.length,
      discordant: {},
      dropped: 60 - open.length,
    });
  });

  it('is sent big bodies as they came, though their room is used again', async () => {
    const bytes = 4_000_000; // more than lies in the sockets' own buffers
    const mixed: number[] = [];
    const trial = await at.trial({ share: 0, rollout: { shadow } }, (request, response, body) => {
      const floatsOf = new Float32Array(
        body.buffer.slice(body.byteOffset + body.length - bytes, body.byteOffset + body.length),
      );
      mixed.push(floatsOf.findIndex((value) => value !== floatsOf[0]));
      right(request, response, body);
    });
    const parameters = { binary_data_size: bytes };
    const head = Buffer.from(
      JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1, bytes / 4], parameters }] }),
    );
    const headers = {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': String(head.length),
    };
    const sent = async (value: number) => {
      const body = Buffer.concat([head, Buffer.from(new Float32Array(bytes / 4).fill(value).buffer)]);
      expect((await at.router.post(`/v2/models/${trial.name}/infer`, body, headers)).status).toBe(200);
    };
    for (let value = 1; mixed.length < 4; value += 4)
      await Promise.all([sent(value), sent(value + 1), sent(value + 2), sent(value + 3)]);
    expect(mixed).toEqual(mixed.map(() => -1));
  });

  it('gets none of what may not run twice', async () => {
    const trial = await at.trial({ share: 0, rollout: { shadow }, route: { idempotent: false } });
    await trial.many(20, () => trial.serve());
    await trial.judged(20);
    expect([trial.asked, trial.told!.pairs]).toEqual([0, undefined]);
  });

  it.each([
    // what it makes of several calls is nothing to compare with one
    ['makes calls of its own', '/serve', {}, 'async process(inputs, _state, ctx) { return ctx.infer(inputs); },'],
    // they are not the tensors that stable's request brought
    ['declares tensors of its own', '/v2', { inputs: [{ name: 'text', datatype: 'BYTES' as const, shape: [-1] }] }, ''],
  ])('is left alone where its module %s', async (_what, path, declares, more) => {
    const hooks = `preprocess() { return { inputs: { x: float32([1, 2, 3, 4], [1, 4]) } }; }, ${more}`;
    const name = `test/shadow-${path.length}`;
    const module = moduleOf(at.router.control, name, 1, hooks);
    const processing = { module: { ...module, facts: { ...module.facts, ...declares } }, isolation: 'worker' as const, options: {} }; // biome-ignore format: one row
    const trial = await at.trial({ share: 0, rollout: { shadow }, candidate: { processing } });
    const send = path === '/v2' ? () => trial.infer() : () => trial.serve();
    await trial.many(20, send);
    const { pairs, compared } = await trial.pairs(({ dropped }) => dropped > 0);
    expect([pairs, compared, trial.asked]).toEqual([0, 0, 0]);
    const { text } = await at.router.send('/metrics');
    expect(text).toContain(`perch_module_starts_total{module="${name}@1"`);
    expect(text).not.toMatch(new RegExp(`perch_module_calls_total\\{module="${name}@1"[^}]*\\} [1-9]`));
  });
});
