import type { Route, RouteRollout, RouteTarget, WorkerEvidence } from '@perch/contracts';
import { route, target } from '../../bench/control-stub.mjs';
import { type Answer, RouterStand } from './router-stand.ts';
import { type Act, fails, ScriptedServer } from './scripted-server.ts';

/** An infer answer with one binary FP32 tensor. */
export const floats =
  (values: number[], fields: object = {}): Act =>
  (_request, response) => {
    const bytes = Buffer.from(Float32Array.from(values).buffer);
    const parameters = { binary_data_size: bytes.length };
    const output = { name: 'y', datatype: 'FP32', shape: [1, values.length], ...fields, parameters };
    const json = Buffer.from(JSON.stringify({ model_name: 'm', model_version: '1', outputs: [output] }));
    const headers = { 'inference-header-content-length': json.length, 'content-length': json.length + bytes.length };
    response.writeHead(200, headers).end(Buffer.concat([json, bytes]));
  };
export const json =
  (outputs: string): Act =>
  (_request, response) =>
    void response.end(`{"model_name":"m","model_version":"1","outputs":[${outputs}]}`);

export const right = floats([1, 2, 3, 4]);
export const broken = floats([1, Number.NaN, 3, 4]);
export const failing = fails(500, 'the model says no');
export const until = async (holds: () => boolean | Promise<boolean>, what: () => string): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`never came true: ${what()}`);
    await new Promise((done) => setTimeout(done, 5));
  }
};

export interface Fields {
  share?: number;
  rollout?: Partial<RouteRollout>;
  route?: Partial<Route>;
  /** A third version that is kept beside the two. */
  kept?: boolean;
  /** Of the candidate: `b` is its own, `a` is stable's. */
  servers?: string[];
  /** Of the candidate's target. */
  candidate?: Partial<RouteTarget>;
}

/** One endpoint with a rollout, so that budgets, ejections and evidence are a test's own. */
export class Trial {
  readonly name: string;
  private readonly at: CanaryStand;

  constructor(at: CanaryStand, name: string) {
    this.at = at;
    this.name = name;
  }

  /** What the candidate does from now on. */
  answers(act: Act): void {
    this.at.candidate.actFor.set(`${this.name}-c`, act);
  }
  get asked(): number {
    return this.at.candidate.countOf(`${this.name}-c`);
  }

  serve = (headers = {}, signal?: AbortSignal): Promise<Answer> =>
    this.at.router.send(`/serve/${this.name}`, {
      method: 'POST',
      body: '{"x":[[1,2,3,4]]}',
      headers: { 'content-type': 'application/json', ...headers },
      ...(signal ? { signal } : {}),
    });
  infer = (headers = {}): Promise<Answer> =>
    this.at.router.post(
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
    return this.at.router.control.evidence.get(`${this.name} 1 0`);
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
    const { text } = await this.at.router.send('/metrics');
    return text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) && line.includes(`endpoint="${this.name}"`))
      .map((line) => line.replace(`endpoint="${this.name}",`, '').slice(name.length));
  }
}

/** A router in front of two model servers that do as they are told: stable's and the candidate's. */
export class CanaryStand {
  readonly stable = new ScriptedServer();
  readonly candidate = new ScriptedServer();
  router!: RouterStand;
  private readonly endpoints: Record<string, Route> = {};

  static async start(): Promise<CanaryStand> {
    const at = new CanaryStand();
    await Promise.all([at.stable.start(), at.candidate.start()]);
    at.router = await RouterStand.start();
    return at;
  }
  async stop(): Promise<void> {
    await this.router?.stop();
    await Promise.all([this.stable.close(), this.candidate.close()]);
  }

  /** Served from now on, beside those before it; `act` is what the candidate does. */
  async trial(
    { share = 0.999, rollout, route: more, kept, servers: held = ['b'], candidate }: Fields,
    act: Act = right,
  ): Promise<Trial> {
    const name = `e${Object.keys(this.endpoints).length + 1}`;
    const trial = new Trial(this, name);
    const tensor = (one: string) => [{ name: one, datatype: 'FP32' as const, shape: [-1, -1] }];
    const tensors = { inputs: tensor('x'), outputs: [{ name: 'y', datatype: 'FP32' as const, shape: [-1, 4] }] };
    const targets = [
      target({ deployment: `${name}-s`, version: 1, tritonModel: `${name}-s`, servers: ['a'], ...tensors }),
      target({
        deployment: `${name}-c`,
        version: 2,
        tritonModel: `${name}-c`,
        servers: held,
        ...tensors,
        ...candidate,
      }),
    ];
    if (kept)
      targets.push(
        target({ deployment: `${name}-k`, version: 3, tritonModel: `${name}-k`, servers: ['b'], ...tensors }),
      );
    this.candidate.actFor.set(`${name}-k`, right);
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
    this.stable.actFor.set(`${name}-s`, right);
    await this.add(name, route(targets, { arms, rollout: spec, ...more }));
    return trial;
  }

  /** Served from now on, beside what is. */
  async add(name: string, route: Route): Promise<void> {
    this.endpoints[name] = route;
    const servers = { a: this.stable.at, b: this.candidate.at };
    const revision = this.router.control.publish({ servers, endpoints: this.endpoints });
    await this.router.untilReport((report) => report.revision >= revision);
  }
}

export const armOf = ({ status, headers }: Answer) =>
  `${status} ${headers.get('x-perch-version')} ${headers.get('x-perch-arm')}`;
export const tally = (answers: Answer[]) => {
  const counts = { '200 1 stable': 0, '200 2 candidate': 0, '200 1 stable; fallback': 0 } as Record<string, number>;
  for (const answer of answers) counts[armOf(answer)] = (counts[armOf(answer)] ?? 0) + 1;
  return counts;
};
export const paths = [
  ['/serve', (trial: Trial) => trial.serve()],
  ['/v2', (trial: Trial) => trial.infer()],
] as const;
