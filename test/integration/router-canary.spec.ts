import type { ServerResponse } from 'node:http';
import type { Route, RouteRollout, WorkerEvidence } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route, target } from '../../bench/control-stub.mjs';
import { type Answer, RouterStand } from './router-stand.ts';
import { type Act, cut, fails, ScriptedServer } from './scripted-server.ts';

/** An infer answer with one binary FP32 tensor. */
const floats =
  (values: number[], fields: object = {}): Act =>
  (_request, response) => {
    const bytes = Buffer.from(Float32Array.from(values).buffer);
    const parameters = { binary_data_size: bytes.length };
    const output = { name: 'y', datatype: 'FP32', shape: [1, values.length], ...fields, parameters };
    const json = Buffer.from(JSON.stringify({ model_name: 'm', model_version: '1', outputs: [output] }));
    const headers = { 'inference-header-content-length': json.length, 'content-length': json.length + bytes.length };
    response.writeHead(200, headers).end(Buffer.concat([json, bytes]));
  };
const json =
  (outputs: string): Act =>
  (_request, response) =>
    void response.end(`{"model_name":"m","model_version":"1","outputs":[${outputs}]}`);

const right = floats([1, 2, 3, 4]);
const broken = floats([1, Number.NaN, 3, 4]);
const failing = fails(500, 'the model says no');
/** Three of every ten requests come to nothing. */
const threeOfTen = (): Act => {
  let count = 0;
  return (...call) => (count++ % 10 < 3 ? failing : right)(...call);
};

const until = async (holds: () => boolean, what: () => string): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`never came true: ${what()}`);
    await new Promise((done) => setTimeout(done, 5));
  }
};

let stable: ScriptedServer;
let candidate: ScriptedServer;
let stand: RouterStand;
const endpoints: Record<string, Route> = {};

beforeAll(async () => {
  [stable, candidate] = await Promise.all([new ScriptedServer().start(), new ScriptedServer().start()]);
  stand = await RouterStand.start();
});
afterAll(async () => {
  await stand?.stop();
  await Promise.all([stable.close(), candidate.close()]);
});

interface Fields {
  share?: number;
  rollout?: Partial<RouteRollout>;
  route?: Partial<Route>;
  /** A third version that is kept beside the two. */
  kept?: boolean;
}

/** One endpoint with a rollout, so that budgets, ejections and evidence are a test's own. */
class Trial {
  readonly name = `e${Object.keys(endpoints).length + 1}`;

  static async start({ share = 0.999, rollout, route: more, kept }: Fields, act: Act = right): Promise<Trial> {
    const trial = new Trial();
    const { name } = trial;
    const tensor = (one: string) => [{ name: one, datatype: 'FP32' as const, shape: [-1, -1] }];
    const tensors = { inputs: tensor('x'), outputs: [{ name: 'y', datatype: 'FP32' as const, shape: [-1, 4] }] };
    const targets = [
      target({ deployment: `${name}-s`, version: 1, tritonModel: `${name}-s`, servers: ['a'], ...tensors }),
      target({ deployment: `${name}-c`, version: 2, tritonModel: `${name}-c`, servers: ['b'], ...tensors }),
    ];
    if (kept)
      targets.push(
        target({ deployment: `${name}-k`, version: 3, tritonModel: `${name}-k`, servers: ['b'], ...tensors }),
      );
    candidate.actFor.set(`${name}-k`, right);
    const arms = [
      { deployment: `${name}-s`, share: 1 - share },
      { deployment: `${name}-c`, share },
    ];
    const spec: RouteRollout = {
      id: name,
      epoch: 1,
      stable: `${name}-s`,
      candidate: `${name}-c`,
      salt: 'salt',
      leaseMs: 15_000,
      slowMs: null,
      slowGraceMs: 0,
      metrics: ['error', 'contract'],
      fallback: { budgetPercent: 20 },
      shadow: null,
      feedbackKey: null,
      ...rollout,
    };
    trial.answers(act);
    stable.actFor.set(`${name}-s`, right);
    endpoints[name] = route(targets, { arms, rollout: spec, ...more });
    const revision = stand.control.publish({ servers: { a: stable.at, b: candidate.at }, endpoints });
    await stand.untilReport((report) => report.revision >= revision);
    return trial;
  }

  /** What the candidate does from now on. */
  answers(act: Act): void {
    candidate.actFor.set(`${this.name}-c`, act);
  }
  get asked(): number {
    return candidate.countOf(`${this.name}-c`);
  }

  serve = (headers = {}): Promise<Answer> => stand.post(`/serve/${this.name}`, { x: [[1, 2, 3, 4]] }, headers);
  infer = (headers = {}): Promise<Answer> =>
    stand.post(
      `/v2/models/${this.name}/infer`,
      { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }] },
      headers,
    );

  /** Eight at a time. */
  async many(times: number, send: () => Promise<Answer>): Promise<Answer[]> {
    const answers: Answer[] = [];
    while (answers.length < times)
      answers.push(...(await Promise.all(Array.from({ length: Math.min(8, times - answers.length) }, send))));
    return answers;
  }

  get told(): WorkerEvidence | undefined {
    return stand.control.evidence.get(`${this.name} 1 0`);
  }
  /** When so many requests have been judged. */
  async judged(
    count: number,
    fallbacks = 0,
  ): Promise<{ told: WorkerEvidence; of: (arm: 'stable' | 'candidate', metric: string) => number[] }> {
    const of = (arm: 'stable' | 'candidate', metric: string) => {
      const { n, x } = this.told?.[arm].ended[metric] ?? { n: 0, x: 0 };
      return [n, x];
    };
    await until(
      () => of('stable', 'error')[0]! + of('candidate', 'error')[0]! >= count && this.told!.fallbacks >= fallbacks,
      () => `${count} judged, ${JSON.stringify(this.told)}`,
    );
    return { told: this.told!, of };
  }
  async pairs(holds: (pairs: NonNullable<WorkerEvidence['pairs']>) => boolean) {
    const now = () => this.told?.pairs ?? { pairs: 0, agree: 0, compared: 0, discordant: {}, dropped: 0 };
    await until(() => holds(now()), () => JSON.stringify(now())); // biome-ignore format: one row
    return now();
  }
  async metric(name: string): Promise<string[]> {
    const { text } = await stand.send('/metrics');
    return text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) && line.includes(`endpoint="${this.name}"`))
      .map((line) => line.replace(`endpoint="${this.name}",`, '').slice(name.length));
  }
}

const armOf = ({ status, headers }: Answer) =>
  `${status} ${headers.get('x-perch-version')} ${headers.get('x-perch-arm')}`;
const tally = (answers: Answer[]) => {
  const counts = { '200 1 stable': 0, '200 2 candidate': 0, '200 1 stable; fallback': 0 } as Record<string, number>;
  for (const answer of answers) counts[armOf(answer)] = (counts[armOf(answer)] ?? 0) + 1;
  return counts;
};
const paths = [
  ['/serve', (trial: Trial) => trial.serve()],
  ['/v2', (trial: Trial) => trial.infer()],
] as const;

describe.concurrent('a candidate on trial', () => {
  it.each(paths)(
    'that fails three times of ten on %s: no client hears of it, and each is charged',
    async (_path, send) => {
      const trial = await Trial.start({ share: 0.5 }, threeOfTen());
      const answers = await trial.many(120, () => send(trial));
      const { asked } = trial;
      const failed = Math.floor(asked / 10) * 3 + Math.min(3, asked % 10);
      expect(tally(answers)).toEqual({
        '200 1 stable': 120 - asked,
        '200 2 candidate': asked - failed,
        '200 1 stable; fallback': failed,
      });
      const { told, of } = await trial.judged(120, failed);
      expect([of('candidate', 'error'), of('stable', 'error')]).toEqual([[asked, failed], [120 - asked, 0]]); // biome-ignore format: one row
      expect(told.fallbacks).toBe(failed);
      expect(await trial.metric('perch_router_fallbacks_total')).toEqual([`{version="2",reason="failed"} ${failed}`]);
    },
  );

  it.each([
    ['cuts connections', cut, 'error', 'unready'],
    ['is not ready', fails(503, "Request for unknown model: 'm' version 1 is not at ready state"), 'error', 'unready'],
    ['does not know the model', fails(404, "Request for unknown model: 'm' is not found"), 'error', 'unready'],
    ['has a full queue', fails(503, 'Exceeds maximum queue size'), 'error', 'failed'],
    ['answers NaN', broken, 'contract', 'contract'],
    ['answers +∞', floats([1, Number.POSITIVE_INFINITY, 3, 4]), 'contract', 'contract'],
    ['answers another type', floats([1, 2], { datatype: 'FP64', shape: [1, 1] }), 'contract', 'contract'],
    ['answers another shape', floats([1, 2, 3, 4, 5]), 'contract', 'contract'],
    ['answers nothing', json(''), 'contract', 'contract'],
  ] as const)('that %s is answered for by stable', async (_what, act, metric, reason) => {
    const trial = await Trial.start({}, act);
    const answers = [...(await trial.many(6, () => trial.serve())), ...(await trial.many(6, () => trial.infer()))];
    const counts = tally(answers);
    const fallen = counts['200 1 stable; fallback']!;
    expect([fallen > 8, fallen + counts['200 1 stable']!]).toEqual([true, 12]);
    const { told, of } = await trial.judged(12, fallen);
    expect([told.fallbacks, of('candidate', metric)]).toEqual([fallen, [fallen, fallen]]);
    for (const answer of answers) expect(answer.text).not.toMatch(/NaN|null/);
    expect(await trial.metric('perch_router_fallbacks_total')).toEqual([`{version="2",reason="${reason}"} ${fallen}`]);
  });

  it.each([
    ['bare NaN', '1,NaN,3,4'],
    ['null', '1,null,3,4'],
    ['no values', ''],
  ])('that answers %s as JSON is answered for by stable', async (_what, data) => {
    const trial = await Trial.start({}, json(`{"name":"y","datatype":"FP32","shape":[1,4],"data":[${data}]}`));
    const answers = [...(await trial.many(6, () => trial.serve())), ...(await trial.many(6, () => trial.infer()))];
    const counts = tally(answers);
    const fallen = counts['200 1 stable; fallback']!;
    expect([fallen > 8, fallen + counts['200 1 stable']!]).toEqual([true, 12]);
    const { of } = await trial.judged(12, fallen);
    // over the protocol the words are seen; where tensors are wanted they cannot even be read
    const [faults, errors] = [of('candidate', 'contract')[1]!, of('candidate', 'error')[1]!];
    expect([faults > 3, faults + errors]).toEqual([true, fallen]);
  });

  it.each(paths)(
    'that hangs leaves stable half of the time on %s, and its own half is an error',
    async (_path, send) => {
      const open: ServerResponse[] = [];
      const trial = await Trial.start({ route: { timeoutMs: 800 } }, (_request, response) => void open.push(response));
      const begun = performance.now();
      expect(armOf(await send(trial))).toBe('200 1 stable; fallback');
      expect(performance.now() - begun).toBeGreaterThanOrEqual(390);
      await until(() => open[0]!.destroyed, () => 'the end of the candidate’s connection'); // biome-ignore format: one row
      const { told, of } = await trial.judged(1, 1);
      expect([told.fallbacks, of('candidate', 'error')]).toEqual([1, [1, 1]]);
      expect(await trial.metric('perch_router_fallbacks_total')).toEqual(['{version="2",reason="late"} 1']);
    },
  );

  it('whose module cannot make anything of its outputs is answered for, whatever the module calls that', async () => {
    const halves = floats([1, 2], { datatype: 'FP16', shape: [1, 4] }); // which has no JSON form: 400
    const trial = await Trial.start({ rollout: { metrics: ['error'] } }, halves);
    const counts = tally(await trial.many(10, () => trial.serve()));
    const fallen = counts['200 1 stable; fallback']!;
    expect([fallen > 5, fallen + counts['200 1 stable']!]).toEqual([true, 10]);
    const { of } = await trial.judged(10, fallen);
    expect(of('candidate', 'error')).toEqual([fallen, fallen]);
  });

  it('is the last to answer when stable has no server: any other version that is kept comes first', async () => {
    const trial = await Trial.start({ share: 0.001, kept: true });
    const notReady = fails(503, "Request for unknown model: 'm' version 1 is not at ready state");
    stable.actFor.set(`${trial.name}-s`, notReady);
    const arms = new Set((await trial.many(10, () => trial.serve())).map(armOf));
    expect([...arms].filter((arm) => arm !== '200 2 candidate')).toEqual([`200 3 ${trial.name}-k`]);
    candidate.actFor.set(`${trial.name}-k`, notReady);
    expect(new Set((await trial.many(10, () => trial.serve())).map(armOf))).toEqual(new Set(['200 2 candidate']));
  });

  it('is not answered for where the client is at fault', async () => {
    const trial = await Trial.start({}, fails(400, "unexpected shape for input 'x' for model 'm'"));
    const answers = await trial.many(10, () => trial.infer());
    const refused = answers.filter((answer) => armOf(answer) === '400 2 candidate');
    expect([refused.length, refused.length > 5]).toEqual([trial.asked, true]);
    const { told, of } = await trial.judged(10);
    expect([told.fallbacks, of('candidate', 'error')]).toEqual([0, [trial.asked, 0]]);
  });

  it.each([
    ['a second run would do harm', { route: { idempotent: false } }],
    ['its policy has no fallback', { rollout: { fallback: null } }],
  ])('is not answered for where %s; a reply that breaks its contract then goes to the client', async (_why, fields) => {
    const trial = await Trial.start(fields, failing);
    const failed = (await trial.many(10, () => trial.serve())).filter(({ status }) => status === 502).length;
    expect([failed > 5, failed]).toEqual([true, trial.asked]);
    trial.answers(broken);
    const answers = await trial.many(10, () => trial.infer());
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const { told, of } = await trial.judged(20);
    expect([of('candidate', 'contract'), told.fallbacks]).toEqual([[trial.asked - failed, trial.asked - failed], 0]);
  });

  it('is answered for 50 times in 10 s where that is more than the share, and then no more', async () => {
    const trial = await Trial.start({ rollout: { fallback: { budgetPercent: 1 } } }, failing);
    const counts = tally(await trial.many(80, () => trial.serve()));
    const onStable = counts['200 1 stable']!;
    expect([counts['200 1 stable; fallback'], counts['502 2 candidate']]).toEqual([50, 30 - onStable]);
    const { told, of } = await trial.judged(80, 50);
    expect([of('candidate', 'error'), told.fallbacks]).toEqual([[80 - onStable, 80 - onStable], 50]);
    const refused = await trial.metric('perch_router_fallbacks_refused_total');
    expect(refused).toEqual([`{version="2",reason="failed"} ${30 - onStable}`]);
  });

  it('answers for none of stable’s own failures', async () => {
    const trial = await Trial.start({ share: 0.001 });
    stable.actFor.set(`${trial.name}-s`, failing);
    const answers = await trial.many(10, () => trial.serve());
    const failed = 10 - trial.asked;
    expect(answers.filter((answer) => armOf(answer) === '502 1 stable').length).toBe(failed);
    const { told, of } = await trial.judged(10);
    expect([of('stable', 'error'), told.fallbacks]).toEqual([[failed, failed], 0]);
  });

  it('is named by its side, pinned requests too; pins and questions count for nobody', async () => {
    const trial = await Trial.start({ share: 0.5 });
    expect(armOf(await trial.serve({ 'x-perch-version': '2' }))).toBe('200 2 candidate');
    expect(armOf(await trial.infer({ 'x-perch-version': '1' }))).toBe('200 1 stable');
    trial.answers(failing);
    expect(armOf(await trial.serve({ 'x-perch-version': '2' }))).toBe('502 2 candidate');
    trial.answers(right);
    for (let i = 0; i < 8; i += 1) expect((await stand.send(`/v2/models/${trial.name}`)).status).toBe(200);
    await trial.many(20, () => trial.serve());
    const { of } = await trial.judged(20);
    expect(of('stable', 'error')[0]! + of('candidate', 'error')[0]!).toBe(20);
    const requests = await trial.metric('perch_router_requests_total');
    expect(requests).toContain('{version="2",arm="candidate",outcome="upstream"} 1');
  });

  it.each([
    ['its contract is not judged', ['error']],
    ['nothing is judged but a flag', ['sad']],
  ])('is not held against its outputs where %s', async (_why, metrics) => {
    const trial = await Trial.start({ rollout: { metrics } }, broken);
    await trial.many(10, () => trial.serve());
    const { told, of } = await trial.judged(10);
    expect([of('candidate', 'contract'), told.fallbacks]).toEqual([[0, 0], 0]);
    expect(await trial.metric('perch_router_contract_faults_total')).toEqual([]);
  });
});

const shadow = { sample: 1, compare: { by: 'auto' as const, absolute: 1e-3, relative: 1e-2, least: 0.99 } };

describe.concurrent('a candidate in the shadow', () => {
  it.each(paths)(
    'gets copies of %s behind the replies, and its answers are compared and dropped',
    async (_path, send) => {
      const trial = await Trial.start({ share: 0, rollout: { shadow } });
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
    const trial = await Trial.start(
      { share: 0, rollout: { shadow }, route: { timeoutMs: 60_000 } },
      (_request, response) => void open.push(response),
    );
    // were one reply to wait for a copy, this would end at the first: no copy is answered before the last reply
    for (let i = 0; i < 60; i += 1) expect((await trial.infer()).status).toBe(200);
    expect(stable.countOf(`${trial.name}-s`)).toBe(60);
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
    const trial = await Trial.start({ share: 0, rollout: { shadow } }, (request, response, body) => {
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
      expect((await stand.post(`/v2/models/${trial.name}/infer`, body, headers)).status).toBe(200);
    };
    for (let value = 1; mixed.length < 4; value += 4)
      await Promise.all([sent(value), sent(value + 1), sent(value + 2), sent(value + 3)]);
    expect(mixed).toEqual(mixed.map(() => -1));
  });

  it('gets none of what may not run twice', async () => {
    const trial = await Trial.start({ share: 0, rollout: { shadow }, route: { idempotent: false } });
    await trial.many(20, () => trial.serve());
    await trial.judged(20);
    expect([trial.asked, trial.told!.pairs]).toEqual([0, undefined]);
  });
});
