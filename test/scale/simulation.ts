import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { seededRandom } from '../support/random.ts';
import { AdminClient } from './admin.client.ts';
import { ControlPlaneProcess } from './control-plane.ts';
import type { ScaleOptions } from './options.ts';
import { SimulatedAgent } from './simulated-agent.ts';
import { SimulatedRouter } from './simulated-router.ts';

const secret = () => randomBytes(16).toString('hex');

export interface Place {
  /** A superuser's URL of a running Postgres; the simulation makes a database of its own there. */
  postgresUrl: string;
  /** For the artifact store and logs. */
  folder: string;
}

/** Control planes as processes on a real Postgres, with agents and routers of this process around them. */
export class Simulation {
  readonly planes: ControlPlaneProcess[] = [];
  readonly agents: SimulatedAgent[] = [];
  readonly routers: SimulatedRouter[] = [];
  admin!: AdminClient;
  db!: pg.Client;
  private readonly name = `scale_${randomBytes(6).toString('hex')}`;
  private readonly keys = { admin: secret(), server: secret(), router: secret() };

  constructor(
    readonly options: ScaleOptions,
    private readonly place: Place,
  ) {}

  /** Control planes first, then everybody else; resolves when all have their first documents. */
  async start(env: Record<string, string> = {}): Promise<void> {
    await this.onServer(`create database ${this.name}`);
    const url = new URL(this.place.postgresUrl);
    url.pathname = `/${this.name}`;
    await this.startPlanes(url.toString(), env);
    this.db = new pg.Client({ connectionString: url.toString() });
    this.db.on('error', () => undefined);
    await this.db.connect();
    const addresses = this.planes.map(({ address }) => address);
    this.admin = new AdminClient(addresses, this.keys.admin);
    this.makeFollowers(addresses);
    await Promise.all([...this.agents, ...this.routers].map((one) => one.start()));
    await until('first documents', 60, () => [
      this.agents.every(({ document }) => document !== null) && this.routers.every(({ table }) => table !== undefined),
      `${this.agents.filter(({ document }) => document).length} servers, ${this.routers.filter(({ table }) => table).length} routers`,
    ]);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.agents, ...this.routers].map((one) => one.stop()));
    await Promise.all(this.planes.map((plane) => plane.stop()));
    await this.db?.end().catch(() => undefined);
    await this.onServer(`drop database if exists ${this.name} with (force)`).catch(() => undefined);
  }

  private async startPlanes(databaseUrl: string, env: Record<string, string>): Promise<void> {
    const store = join(this.place.folder, 'store');
    await mkdir(store, { recursive: true });
    const settings = {
      PERCH_DATABASE_URL: databaseUrl,
      PERCH_STORE_URL: pathToFileURL(store).href,
      PERCH_BOOTSTRAP_ADMIN_KEY: this.keys.admin,
      PERCH_BOOTSTRAP_JOIN_KEY_SERVER: this.keys.server,
      PERCH_BOOTSTRAP_JOIN_KEY_ROUTER: this.keys.router,
      ...env,
    };
    for (let index = 1; index <= this.options.controlPlanes; index += 1) {
      const name = `control-plane-${index}`;
      this.planes.push(new ControlPlaneProcess(name, settings, join(this.place.folder, `${name}.log`)));
    }
    for (const plane of this.planes) await plane.start();
  }

  private makeFollowers(addresses: readonly string[]): void {
    const { servers, routers, loadMs, seed } = this.options;
    const random = seededRandom(seed);
    const [least, most] = loadMs;
    const habits = { loadMs: () => least + random() * (most - least), loadsAtOnce: 4, stepMs: 5 };
    const at = (index: number) => addresses[index % addresses.length]!;
    for (let index = 0; index < servers; index += 1) {
      const name = `server-${String(index).padStart(3, '0')}`;
      this.agents.push(new SimulatedAgent({ name, controlUrl: at(index), joinKey: this.keys.server, habits }));
    }
    for (let index = 0; index < routers; index += 1)
      this.routers.push(new SimulatedRouter(`router-${index}`, at(index), this.keys.router));
  }

  private async onServer(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.place.postgresUrl });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  }
}

/** Looks every 20 ms until the condition holds; throws with its last words when it does not within `seconds`. */
export async function until(
  thing: string,
  seconds: number,
  look: () => [boolean, string] | Promise<[boolean, string]>,
): Promise<void> {
  const deadline = performance.now() + seconds * 1_000;
  for (;;) {
    const [holds, words] = await look();
    if (holds) return;
    if (performance.now() > deadline) throw new Error(`${thing}: not within ${seconds} s; at the end: ${words}`);
    await new Promise((next) => setTimeout(next, 20));
  }
}
