import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Endpoint, Pool, Server, ServerDetail } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaleModel } from '../support/onnx.ts';
import { Person, type Up, until } from './cli-stack.ts';

let person: Person;
let up: Up;
beforeAll(async () => {
  person = await Person.make();
  up = await person.up('--servers', '3');
  await writeFile(join(person.folder, 'one.onnx'), scaleModel(1));
  await person.run(['model', 'upload', 'nlp/scale', 'one.onnx', '--publish']);
  await person.run(['endpoint', 'add', 'text/scale', '--model', 'nlp/scale', '--replicas', '2', '--wait']);
}, 240_000);
afterAll(async () => {
  await up?.end();
  await person?.leave();
});

const ones = '{"x": [[1, 1, 1, 1]]}';
const infer = () => person.run(['endpoint', 'infer', 'text/scale', '--json', ones]);
const holders = async () => {
  const { deployments } = await person.json<Endpoint>('endpoint', 'show', 'text/scale');
  return deployments.flatMap(({ servers }) =>
    servers.filter(({ state }) => state === 'ready').map(({ server }) => server),
  );
};

describe('a fleet from the command line', () => {
  it('a drained server serves nothing any more, and its replica is ready on another one', async () => {
    await until(async () => (await holders()).length === 2, 30_000);
    const [server] = await holders();
    const drained = await person.run(['fleet', 'drain', server!, '--reason', 'new driver', '--wait=60s']);
    expect(drained).toMatchObject({ code: 0, err: '' });
    expect(drained.out).toContain(`Server ${server} is out of service: no router sends to it any more.`);
    expect(await holders()).toHaveLength(2);
    expect(await holders()).not.toContain(server);
    const detail = await person.json<ServerDetail>('fleet', 'server', 'show', server!);
    expect(detail.drain).toMatchObject({ drained: true, reason: 'new driver', waitsFor: [] });
    expect((await infer()).code).toBe(0);
    const [pool] = await person.json<Pool[]>('fleet', 'pools');
    expect(pool).toMatchObject({ name: 'default', servers: 3, live: 3, draining: 1, endpoints: 1 });
    expect((await person.run(['fleet', 'servers'])).out).toMatch(new RegExp(`${server} +default +yes +drained`));
    expect((await person.run(['fleet', 'undrain', server!])).out).toContain(`Server ${server} is in service again.`);
  }, 120_000);

  it('rolls a pool with a hook, while requests are served', async () => {
    let failed = 0;
    let asked = 0;
    let ends = false;
    const asking = (async () => {
      while (!ends) {
        asked += 1;
        if ((await infer()).code !== 0) failed += 1;
      }
    })();
    const rolled = await person.run([
      'fleet',
      'roll',
      'default',
      '--exec',
      'echo "hook $PERCH_SERVER_NAME"',
      '--wait',
      '60s',
    ]);
    ends = true;
    await asking;
    expect(rolled.code, rolled.err).toBe(0);
    const servers = await person.json<Server[]>('fleet', 'servers');
    for (const { name, drain } of servers) {
      expect(rolled.err).toContain(`hook ${name}`);
      expect(drain).toBeNull();
    }
    expect(asked).toBeGreaterThan(2);
    expect(failed).toBe(0);
  }, 240_000);

  it('says what it does not know', async () => {
    expect((await person.run(['fleet', 'drain', 'nowhere'])).code).toBe(3);
    expect((await person.run(['fleet', 'roll', 'nowhere'])).code).toBe(3);
    expect((await person.run(['fleet', 'server', 'show', 'nowhere'])).code).toBe(3);
    expect((await person.run(['fleet', 'roll', 'default', '--max-unavailable', 'many'])).code).toBe(2);
  });
});
