import { existsSync } from 'node:fs';
import { open, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { documentSchema, oldestDocumentSchema } from '@perch/contracts';
import { Admin } from '../support/admin.ts';
import type { FleetStack } from '../support/fleet-stack.ts';
import type { VersionBook } from '../support/version-book.ts';
import type { Fault } from './schedule.plan.ts';

type Heal = () => Promise<void>;
const nothing: Heal = async () => undefined;

/** A period in which an answer may be missing or a version be forgotten, because it was made so. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** Does faults to a fleet, and undoes them. */
export class Faults {
  /** By router: when it was dead. */
  readonly routerDeaths: (Span & { router: string })[] = [];
  /** From the backup to its restore: what happened in between is forgotten. */
  readonly forgotten: Span[] = [];
  private crashModels = 0;

  constructor(
    private readonly stack: FleetStack,
    private readonly book: VersionBook,
    private readonly say: (words: string) => void,
  ) {}

  /** Resolves to what heals it. */
  async inject(fault: Fault): Promise<Heal> {
    switch (fault.kind) {
      case 'kill':
        return this.kill(fault.target);
      case 'end': {
        const part = this.stack.part(fault.target);
        await part.end?.(); // nothing may be lost
        return () => part.start();
      }
      case 'freeze': {
        const part = this.stack.part(fault.target);
        part.freeze();
        return async () => part.thaw();
      }
      case 'cut':
      case 'hole':
      case 'slow': {
        const link = this.stack.link(fault.target);
        await link.set(fault);
        return () => link.set({ kind: 'pass' });
      }
      case 'fill-disk':
        return this.fillDisk(fault.target);
      case 'corrupt-cache':
        return this.corruptCache(fault.target);
      case 'corrupt-objects':
        return this.corruptObjects();
      case 'crash-model':
        return this.crashModel();
      case 'restore-backup':
        return this.backup();
      case 'upgrade-schema':
        return this.upgrade();
    }
  }

  private async kill(name: string): Promise<Heal> {
    const part = this.stack.part(name);
    const death = { router: name, fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
    if (part.kind === 'router') this.routerDeaths.push(death);
    await part.kill();
    return async () => {
      await part.start();
      death.toMs = Date.now();
    };
  }

  private folderOf(server: string): string {
    return this.stack.servers.find(({ name }) => name === server)!.folder;
  }

  private async fillDisk(server: string): Promise<Heal> {
    const filler = join(this.folderOf(server), 'filler');
    const { bavail, bsize } = await statfs(this.folderOf(server));
    await writeFile(filler, Buffer.alloc(bavail * bsize)).catch(() => undefined); // all that is left
    return () => rm(filler, { force: true });
  }

  private async corruptCache(server: string): Promise<Heal> {
    const folder = join(this.folderOf(server), 'agent/cache/blobs');
    const names = await readdir(folder).catch(() => [] as string[]);
    for (const name of names) await flip(join(folder, name));
    this.say(`corrupted ${names.length} cached files of ${server}`);
    return nothing;
  }

  /** Every object that comes into the store from now on loses a byte, until the end; then all are as they were. */
  private async corruptObjects(): Promise<Heal> {
    const root = this.stack.s3 ? this.stack.s3.dataFolder : join(this.stack.folder, 'store');
    const blobs = async () =>
      (await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []))
        .filter((entry) => entry.isFile() && /\/blobs\//.test(entry.parentPath))
        .map((entry) => join(entry.parentPath, entry.name));
    const before = new Set(await blobs());
    const flipped = new Set<string>();
    let working: Promise<void> | undefined;
    const timer = setInterval(() => {
      working ??= (async () => {
        for (const path of await blobs())
          if (!before.has(path) && !flipped.has(path) && (await flip(path))) flipped.add(path);
      })().finally(() => (working = undefined));
    }, 50);
    return async () => {
      clearInterval(timer);
      await working;
      for (const path of flipped) await flip(path);
      this.say(`${flipped.size} objects were corrupt for a while`);
    };
  }

  /** An endpoint on one server whose model ends the server that loads it. */
  private async crashModel(): Promise<Heal> {
    this.crashModels += 1;
    const name = `killer-${this.crashModels}`;
    const admin = new Admin(this.stack, undefined, 5_000);
    const code = [
      'import os, signal',
      'class TritonPythonModel:',
      '    @staticmethod',
      '    def auto_complete_config(config):',
      '        return config',
      '    def initialize(self, args):',
      '        os.kill(os.getppid(), signal.SIGKILL)',
      '    def execute(self, requests):',
      '        return []',
    ].join('\n');
    const shape = [{ name: 'x', type: 'FP32' as const, dims: [4] }];
    const given = await persist(40_000, async () => {
      await admin.upload(`crash/${name}`, { 'model.py': Buffer.from(`${code}\n# ${Date.now()}\n`) });
      await admin.addEndpoint({
        name: `crash/${name}`,
        model: { project: 'crash', name },
        engine: { platform: 'python', inputs: shape, outputs: [{ ...shape[0]!, name: 'y' }] },
      });
    });
    if (!given) this.say('the crashing model could not be given: skipped');
    return () => persist(20_000, () => this.takeBackCrashModels()).then(() => undefined);
  }

  /** Also what a backup has brought back. */
  async takeBackCrashModels(): Promise<void> {
    const admin = new Admin(this.stack, undefined, 5_000);
    const { items } = await admin.must<{ items: { name: string }[] }>('GET', '/endpoints?limit=100');
    for (const { name } of items)
      if (name.startsWith('crash/')) await admin.must('DELETE', `/endpoints/${encodeURIComponent(name)}`);
  }

  /** What the control plane knows now is what it knows again when this is healed. */
  private async backup(): Promise<Heal> {
    const span = { fromMs: Date.now(), toMs: 0 };
    let restore: Heal | undefined;
    const taken = await persist(40_000, async () => {
      span.fromMs = Date.now();
      restore = await this.stack.postgres.snapshot();
    });
    if (!taken) {
      this.say('no backup could be taken: skipped');
      return nothing;
    }
    return async () => {
      await persist(60_000, () => this.book.read(this.stack.postgres));
      await persist(60_000, async () => {
        await restore?.();
        span.toMs = Date.now();
      });
      if (span.toMs > 0) this.forgotten.push(span);
      this.say('the backup is in place');
    };
  }

  /** A release that writes documents of the next shape takes over while routers and agents stay; then it is taken back. */
  private async upgrade(): Promise<Heal> {
    const schema = (next: number) => async () => {
      for (const program of this.stack.controlPlanes) {
        program.set('PERCH_DOCUMENT_SCHEMA', String(next));
        await program.stop();
        await this.stack.part(program.name).start();
      }
    };
    await schema(documentSchema)();
    return schema(oldestDocumentSchema);
  }
}

/** Tries until it works or the time is up. */
export async function persist(timeoutMs: number, work: () => Promise<void>): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  for (;;)
    try {
      await work();
      return true;
    } catch {
      if (Date.now() > deadline) return false;
      await new Promise((next) => setTimeout(next, 300));
    }
}

/** Turns one byte in the middle over, in place; twice is as before. False: nothing to turn. */
async function flip(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const bytes = await readFile(path).catch(() => Buffer.alloc(0));
  if (bytes.length === 0) return false;
  const at = bytes.length >> 1;
  const file = await open(path, 'r+').catch(() => undefined);
  if (!file) return false;
  await file.write(Buffer.from([bytes[at]! ^ 0xff]), 0, 1, at);
  await file.close();
  return true;
}
