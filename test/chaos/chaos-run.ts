import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { oldestDocumentSchema } from '@perch/contracts';
import { Admin } from '../support/admin.ts';
import { CheckedLoad, type CheckedReply, latencyMs } from '../support/checked-load.ts';
import { FleetStack } from '../support/fleet-stack.ts';
import { seededRandom } from '../support/random.ts';
import { VersionBook } from '../support/version-book.ts';
import { differences } from './convergence.ts';
import { Faults, persist } from './faults.ts';
import { Publisher } from './publisher.ts';
import { type ChaosWorld, planSchedule, type ScheduledFault } from './schedule.plan.ts';

export interface ChaosOptions {
  seed: number;
  totalMs: number;
  engine: 'triton' | 'engine';
  perSecond: number;
}

export interface ChaosReport {
  seed: number;
  requests: number;
  wrong: string[];
  failed: string[];
  /** In flight in a router process that was killed. */
  lostWithRouter: number;
  published: number;
  faults: number;
  converged: boolean;
  convergedMs: number;
  /** What still differed, or must never have happened. */
  troubles: string[];
  /** Slowest answer and the 99th of a hundred. */
  latency: { p50Ms: number; p99Ms: number; maxMs: number };
  skipped: string[];
  /** Where the logs lie; only of a run that failed. */
  logs?: string;
}

const routerGraceMs = 6_000;
const convergeWithinMs = 60_000;
const smallDiskBytes = 48 * 1024 * 1024;
const endpoints = [
  { name: 'chaos/three', share: 0.7, replicas: 3 },
  { name: 'chaos/two', share: 0.2, replicas: 2 },
  { name: 'chaos/one', share: 0.1, replicas: 1 },
];

/** One seed: a fleet under load and under faults, then peace, then the reckoning. */
export class ChaosRun {
  private readonly timeline: string;
  private readonly startedAt = Date.now();
  private readonly skipped: string[] = [];
  private readonly book = new VersionBook();
  private stack!: FleetStack;
  private load!: CheckedLoad;
  private faults!: Faults;
  private publisher!: Publisher;
  private smallDisk: string | undefined;

  constructor(private readonly options: ChaosOptions) {
    this.timeline = join(mkdtempSync(join(tmpdir(), `perch-chaos-${options.seed}-`)), 'timeline.log');
  }

  private readonly say = (words: string): void => {
    const at = ((Date.now() - this.startedAt) / 1_000).toFixed(2).padStart(7);
    appendFileSync(this.timeline, `${new Date().toISOString()} ${at} ${words}\n`);
  };

  async run(): Promise<ChaosReport> {
    this.smallDisk = this.mountSmallDisk();
    try {
      await this.startFleet();
      await this.underFaults();
      const report = await this.reckon();
      const bad = report.wrong.length + report.failed.length + report.troubles.length > 0 || !report.converged;
      if (bad) report.logs = this.keepLogs(report);
      else rmSync(join(this.timeline, '..'), { recursive: true, force: true });
      return report;
    } finally {
      await this.load?.stop();
      await this.stack?.stop();
      if (this.smallDisk) execFileSync('umount', ['-l', this.smallDisk]);
    }
  }

  /** A disk of its own for one server, so that filling it harms nobody else. */
  private mountSmallDisk(): string | undefined {
    const folder = mkdtempSync(join(tmpdir(), 'perch-chaos-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${smallDiskBytes}`, 'none', folder], { stdio: 'ignore' });
      return folder;
    } catch {
      this.skipped.push('filling a disk: no tmpfs may be mounted here');
      return undefined;
    }
  }

  private async startFleet(): Promise<void> {
    this.stack = await FleetStack.start({
      servers: 3,
      routers: 2,
      engine: this.options.engine,
      supervised: [2],
      serverFolders: this.smallDisk ? { 0: this.smallDisk } : {},
      controlPlane: {
        PERCH_ROUTER_GRACE_MS: String(routerGraceMs),
        PERCH_DOCUMENT_SCHEMA: String(oldestDocumentSchema),
      },
      agent: { PERCH_CACHE_KEEP_BYTES: '0' },
    });
    if (!this.stack.s3) this.skipped.push('faults of the object store: no real S3 server is installed');
    if (this.options.engine === 'engine')
      this.skipped.push('a model that crashes its server: the engine runs no Python');
    const random = seededRandom(this.options.seed + 1);
    const models = endpoints.map(({ name }) => name);
    this.publisher = new Publisher(this.stack, this.book, models, () => 500 + random() * 2_000, this.say);
    this.faults = new Faults(this.stack, this.book, this.say);
    const admin = new Admin(this.stack);
    for (const { name, replicas } of endpoints) {
      await this.publisher.publish(name);
      const [project, model] = name.split('/') as [string, string];
      await admin.addEndpoint({
        name,
        model: { project, name: model, maxVersions: 2 },
        fleet: { replicas, minReplicas: Math.max(1, replicas - 1) },
      });
    }
    const { adminKey, controlPlane } = this.stack;
    for (const router of this.stack.routers)
      for (const { name } of endpoints) {
        const target = { adminKey, controlPlane, router, logs: () => this.stack.logs() };
        await new Admin(target).untilServed(name, 1, { x: [[1, 2, 3, 4]] }, 60_000);
      }
    const routers = this.stack.routers.map(({ name, address }) => ({ name, address }));
    this.load = new CheckedLoad({ routers, key: adminKey, endpoints, perSecond: this.options.perSecond });
    this.load.start();
  }

  private world(): ChaosWorld {
    const { parts, links, servers } = this.stack;
    return {
      parts,
      links: links.map(({ kind, proxy }) => ({ kind, name: proxy.name })),
      smallDisk: this.smallDisk && servers[0]!.name,
      servers: servers.map(({ name }) => name),
      crashModel: this.options.engine === 'triton',
      routerGraceMs,
    };
  }

  private async underFaults(): Promise<void> {
    const plan = planSchedule(this.options.seed, this.world(), this.options.totalMs);
    const begunAt = Date.now();
    this.publisher.start();
    const confirming = setInterval(() => void this.confirm(), 2_000);
    await Promise.all(plan.map((one) => this.play(one, begunAt)));
    await until(begunAt + this.options.totalMs);
    this.say('the faults are over');
    await this.publisher.stop();
    this.planned = plan.length;
    clearInterval(confirming);
  }
  private planned = 0;

  private async play({ fault, atMs, durationMs }: ScheduledFault, begunAt: number): Promise<void> {
    await until(begunAt + atMs);
    const words = `${fault.kind} ${'target' in fault ? fault.target : ''}`.trim();
    this.say(`fault  ${words} for ${durationMs} ms`);
    const heal = await this.faults.inject(fault);
    await new Promise((done) => setTimeout(done, durationMs));
    await heal();
    this.say(`healed ${words}`);
  }

  /** The person who looks after a restore: the database as it stands is the truth. */
  private async confirm(): Promise<void> {
    const admin = new Admin(this.stack, undefined, 3_000);
    const answer = await admin.call<{ confirmed: boolean }>('GET', '/status').catch(() => undefined);
    if (answer?.status !== 200 || answer.body.confirmed) return;
    const done = await admin.call('POST', '/fleet/confirm', {}).catch(() => undefined);
    if (done?.status === 200) this.say('confirmed that the database as it stands is the truth');
  }

  private async reckon(): Promise<ChaosReport> {
    const healedAt = Date.now();
    let left = await this.converge(healedAt + convergeWithinMs);
    const convergedMs = Date.now() - healedAt;
    this.say(left.length === 0 ? `converged in ${convergedMs} ms` : `not converged: ${left.join('; ')}`);
    if (left.length === 0) {
      await persist(20_000, async () => void (await this.publisher.publish(endpoints[0]!.name)));
      left = await this.converge(Date.now() + convergeWithinMs); // and it goes on from there
    }
    const replies = await this.load.stop();
    await this.book.read(this.stack.postgres);
    return this.reportOf(replies, left, convergedMs);
  }

  /** Until all is as it was asked for; what still differs at the deadline. */
  private async converge(deadline: number): Promise<string[]> {
    for (;;) {
      await this.confirm();
      const left = await this.faults.takeBackCrashModels().then(
        () => differences(this.stack, endpoints),
        (error: Error) => [error.message],
      );
      if (left.length === 0 || Date.now() > deadline) return left;
      await new Promise((next) => setTimeout(next, 300));
    }
  }

  private async reportOf(replies: CheckedReply[], left: string[], convergedMs: number): Promise<ChaosReport> {
    const bad = replies.filter(({ status }) => status !== 200);
    const lost = bad.filter((reply) => this.diedWithRouter(reply));
    const good = replies.filter(({ status }) => status === 200);
    const wrong = good.flatMap((reply) => {
      const fault = this.book.fault(reply);
      return fault ? [`${at(reply)}: ${fault}`] : [];
    });
    const failed = bad.filter((reply) => !lost.includes(reply)).map((one) => `${at(one)}: ${one.status} ${one.words}`);
    return {
      seed: this.options.seed,
      requests: replies.length,
      wrong,
      failed,
      lostWithRouter: lost.length,
      published: this.publisher.published.length,
      faults: this.planned,
      converged: left.length === 0,
      convergedMs,
      troubles: [...left, ...(await this.lostVersions()), ...this.stack.unexpectedExits],
      latency: {
        p50Ms: latencyMs(good, 0.5),
        p99Ms: latencyMs(good, 0.99),
        maxMs: latencyMs(good, 1),
      },
      skipped: this.skipped,
    };
  }

  private diedWithRouter({ router, status, startedAt, endedAt }: CheckedReply): boolean {
    return (
      status === 0 &&
      this.faults.routerDeaths.some(
        (death) => death.router === router && startedAt <= death.toMs && endedAt >= death.fromMs,
      )
    );
  }

  /** Every version that was said to be published is there, with its bytes, unless a backup from before was put in its place. */
  private async lostVersions(): Promise<string[]> {
    const rows = await this.stack.postgres.query(
      `select m.project || '/' || m.name as model, v.number, v.state from versions v join models m on m.id = v.model_id`,
    );
    const there = new Map(rows.map((row) => [`${row['model']} ${row['number']}`, row['state']]));
    const forgotten = (answeredMs: number, askedMs: number) =>
      this.faults.forgotten.some(({ fromMs, toMs }) => answeredMs >= fromMs && askedMs <= toMs);
    return [
      ...this.book.changed.map((name) => `${name} was shown with other bytes`),
      ...this.publisher.published
        .filter(({ answeredMs, askedMs }) => !forgotten(answeredMs, askedMs))
        .filter(({ model, number }) => there.get(`${model} ${number}`) !== 'published')
        .map(
          ({ model, number }) => `${model} ${number} was published and is ${there.get(`${model} ${number}`) ?? 'gone'}`,
        ),
    ];
  }

  private keepLogs(report: ChaosReport): string {
    const folder = join(this.timeline, '..');
    mkdirSync(join(folder, 'logs'), { recursive: true });
    cpSync(this.stack.folder, join(folder, 'logs'), {
      recursive: true,
      filter: (path) => path === this.stack.folder || /\.log$/.test(path),
    });
    for (const { name, tritonLog } of this.stack.servers)
      if (existsSync(tritonLog)) cpSync(tritonLog, join(folder, 'logs', `triton-of-${name}.log`));
    for (const words of [...report.wrong, ...report.failed, ...report.troubles]) this.say(words);
    return folder;
  }
}

const at = ({ endpoint, router, startedAt, endedAt, version }: CheckedReply): string =>
  `${new Date(startedAt).toISOString()} +${endedAt - startedAt} ms ${router} ${endpoint} version ${version}`;

const until = (time: number) => new Promise((done) => setTimeout(done, Math.max(0, time - Date.now())));
