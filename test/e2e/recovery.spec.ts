import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin } from '../support/admin.ts';
import { ConstantLoad } from '../support/load.ts';
import { scaleModel } from '../support/onnx.ts';
import { type Program, Stack } from '../support/stack.ts';

const input = { x: [[1, 2, 3, 4]] };

describe('every program killed and started again', () => {
  let stack: Stack;
  let admin: Admin;
  let published = 0;

  const publish = async () => {
    published += 1;
    await admin.upload('kill/scale', { 'model.onnx': scaleModel(published) });
  };
  const underLoad = async (work: () => Promise<void>) => {
    const headers = { authorization: `Bearer ${stack.adminKey}` };
    const load = new ConstantLoad(
      `${stack.router.address}/serve/kill/scale`,
      headers,
      JSON.stringify(input),
      50,
    ).start();
    await work().finally(() => load.stop());
    return load.replies.filter(({ status }) => status !== 200);
  };

  beforeAll(async () => {
    stack = await Stack.start();
    admin = new Admin(stack);
    await publish();
    await admin.addEndpoint({ name: 'kill/scale', model: { project: 'kill', name: 'scale', maxVersions: 2 } });
    await admin.untilServed('kill/scale', 1, input);
  });
  afterAll(() => stack?.stop());

  it.each(['control-plane', 'agent'] as const)(
    '%s: requests go on while it is away, and the next version is served after',
    async (name) => {
      const program = stack.programs.find((one) => one.name === name) as Program;
      const failed = await underLoad(async () => {
        if (name === 'control-plane') {
          await publish();
          await program.crash(); // right after the change was accepted: the loops must find the work by themselves
        } else {
          const done = publish();
          await program.crash();
          await done;
        }
        await admin.untilServed('kill/scale', published, input);
      });
      expect(failed.slice(0, 3)).toEqual([]);
    },
  );

  it('router: answers from its table on disk while the control plane is away', async () => {
    await stack.controlPlane.stop('SIGKILL');
    await stack.router.crash();
    const answer = await admin.serve('kill/scale', input);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    await stack.controlPlane.start();
    await publish();
    await admin.untilServed('kill/scale', published, input);
  });

  it('engine: everything is loaded again from the cache without the control plane', async () => {
    await stack.controlPlane.stop('SIGKILL');
    await stack.engine?.crash();
    await admin.untilServed('kill/scale', published, input);
    await stack.controlPlane.start();
    await publish();
    await admin.untilServed('kill/scale', published, input);
  });

  it('engine at another address: routers follow the agent there', async () => {
    const { engine, agent } = stack;
    await Promise.all([engine!.stop('SIGKILL'), agent.stop('SIGKILL')]);
    for (const name of ['HTTP', 'GRPC', 'METRICS']) engine!.set(`PERCH_ENGINE_${name}`, '127.0.0.1:0');
    await engine!.start();
    for (const name of ['HTTP', 'GRPC']) agent.set(`PERCH_TRITON_${name}`, engine!.setting(`PERCH_ENGINE_${name}`));
    await agent.start();
    await admin.untilServed('kill/scale', published, input);
  });

  it('all at once', async () => {
    await Promise.all(stack.programs.map((program) => program.stop('SIGKILL')));
    for (const program of [stack.controlPlane, stack.engine, stack.agent, stack.router]) await program?.start();
    await admin.untilServed('kill/scale', published, input);
    await publish();
    await admin.untilServed('kill/scale', published, input);
  });
});
