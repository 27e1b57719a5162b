import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Admin } from '../support/admin.ts';
import { ConstantLoad } from '../support/load.ts';
import { ensembleConfig, ensembleModel, pythonModel, scalePython } from '../support/python-models.ts';
import { missingReason } from '../support/real-parts.ts';
import type { Stack } from '../support/stack.ts';
import { startTritonStack, type TritonStack } from '../support/triton-stack.ts';

const input = { x: [[1, 2, 3, 4]] };
const scaled = (body: unknown, factor: number) =>
  JSON.stringify(body)
    .replaceAll('.0', '')
    .includes([1, 2, 3, 4].map((x) => x * factor).join(','));

describe.skipIf(missingReason('triton'))('ensembles on the real Triton', () => {
  let whole: TritonStack;
  let stack: Stack;
  let admin: Admin;
  beforeAll(async () => {
    whole = await startTritonStack();
    ({ stack, admin } = whole);
  });
  afterAll(() => whole?.stop());

  const heldModels = async () => Object.keys((await admin.servers())[0]?.observed?.models ?? {});

  it('an update of an ensemble loses no request, and all of it goes when the endpoint goes', async () => {
    await admin.upload('ens/chain', ensembleModel('chain', { first: 2, second: 5 }));
    await admin.addEndpoint({ name: 'ens/chain', model: { project: 'ens', name: 'chain' } });
    await admin.untilServed('ens/chain', 1, input, 60_000);
    expect(scaled((await admin.serve('ens/chain', input)).body, 10)).toBe(true);
    expect(await heldModels()).toHaveLength(3);

    const load = new ConstantLoad(
      `${stack.router.address}/serve/ens/chain`,
      { authorization: `Bearer ${stack.adminKey}` },
      JSON.stringify(input),
      40,
    ).start();
    try {
      await admin.upload('ens/chain', ensembleModel('chain', { first: 2, second: 7 }));
      await admin.untilServed('ens/chain', 2, input, 60_000);
    } finally {
      await load.stop();
    }
    const bad = load.replies.filter(({ status }) => status !== 200);
    expect(bad.slice(0, 3), bad.length > 0 ? await stack.logs() : '').toEqual([]);
    const wrong = load.replies.filter(({ version, body }) => !scaled(JSON.parse(body), version === 1 ? 10 : 14));
    expect(wrong.slice(0, 3)).toEqual([]);

    await admin.must('DELETE', '/endpoints/ens%2Fchain');
    await expect.poll(heldModels, { timeout: 60_000, interval: 200 }).toEqual([]);
  });

  it.each([
    ['a step that nobody knows', { 'e/config.pbtxt': ensembleConfig('e', ['nope']) }, 'steps into nope'],
    [
      'ensembles in a circle',
      { 'a/config.pbtxt': ensembleConfig('a', ['b']), 'b/config.pbtxt': ensembleConfig('b', ['a']) },
      'in a circle: a -> b -> a',
    ],
  ])('%s fails the deployment with words that say so', async (_name, texts, words) => {
    const model = `bad-${words.length}`;
    const files = Object.fromEntries(
      Object.entries(texts).map(([path, text]) => [path, new TextEncoder().encode(text)] as const),
    );
    await admin.upload(`ens/${model}`, files);
    await admin.addEndpoint({ name: `ens/${model}`, model: { project: 'ens', name: model } });
    await expect
      .poll(async () => (await admin.endpoint(`ens/${model}`)).deployments.map(({ reason }) => reason).join(), {
        timeout: 20_000,
      })
      .toContain(words);
  });

  it('steps into a Perch model: its absence is named, its publishing heals it, its updates are followed', async () => {
    await admin.upload('ens/late', pythonModel('late', scalePython(9)), { publish: false });
    const config = new TextEncoder().encode(ensembleConfig('front', ['late']));
    await admin.upload('ens/front', { 'config.pbtxt': config }, { uses: { late: 'ens/late' } });
    await admin.addEndpoint({ name: 'ens/front', model: { project: 'ens', name: 'front' } });
    await expect
      .poll(async () => (await admin.endpoint('ens/front')).deployments.map(({ reason }) => reason).join(), {
        timeout: 20_000,
      })
      .toContain('uses ens/late (as late), of which no version is published');
    await admin.must('POST', '/models/ens/late/versions/1/publish');
    await admin.untilServed('ens/front', 1, input, 60_000);
    expect(scaled((await admin.serve('ens/front', input)).body, 9)).toBe(true);
    await admin.upload('ens/late', pythonModel('late', scalePython(4)));
    await expect
      .poll(async () => scaled((await admin.serve('ens/front', input)).body, 4), { timeout: 60_000, interval: 100 })
      .toBe(true);
  });
});
