import { ExternalSource } from '@perch/fleet';
import { silentLogger } from '@perch/platform';
import type { RegistryService } from '@perch/registry';
import { type InlineModel, type TritonControl, TritonFault } from '@perch/triton/control';
import { ExternalApply } from '../../apps/control-plane/src/loops/external.apply.ts';
import { ExternalReconcile } from '../../apps/control-plane/src/loops/external.reconcile.ts';
import type { ExternalTritons } from '../../apps/control-plane/src/loops/external-triton.client.ts';
import type { FleetWorld } from '../support/fleet.ts';

const x = [{ name: 'x', datatype: 'FP32' as const, shape: [-1, 4] }];

/** A Triton in memory, as far as the control plane asks one that has no agent. */
export class FakeExternal {
  /** What its owner loaded: versions with their states. */
  readonly own = new Map<string, Record<string, string>>();
  /** What came with a request to load it. */
  readonly inline = new Map<string, InlineModel>();
  readonly loads: string[] = [];
  readonly unloads: string[] = [];
  down: string | undefined;
  /** Models that do not load, with its words. */
  readonly bad = new Map<string, string>();
  /** Holds a load back until it is called. */
  hold: Promise<void> | undefined;

  restart(): void {
    this.inline.clear();
  }

  readonly control = {
    live: () => this.answer(true),
    ready: () => this.answer(true),
    serverMetadata: () => this.answer({ name: 'triton', version: '2.51.0', extensions: [] }),
    index: () =>
      this.answer(
        [...this.own].flatMap(([name, versions]) =>
          Object.entries(versions).map(([version, state]) => ({ name, version, state, reason: '' })),
        ),
      ),
    statistics: () => this.answer([...this.own.keys(), ...this.inline.keys()].map((name) => ({ name }))),
    modelMetadata: (name: string) => this.answer({ name, versions: [], platform: '', inputs: x, outputs: x }),
    modelConfig: () => this.answer({ max_batch_size: 8 }),
    load: async (name: string, { inline }: { inline: InlineModel }) => {
      this.loads.push(name);
      await this.hold;
      const words = [...this.bad].find(([prefix]) => name.startsWith(prefix))?.[1];
      if (words) throw new TritonFault('load', `load of ${name}`, words);
      this.inline.set(name, inline);
    },
    unload: async (name: string) => {
      this.unloads.push(name);
      this.inline.delete(name);
    },
    close: () => undefined,
  };

  private async answer<T>(value: T): Promise<T> {
    if (this.down) throw new TritonFault('connection', 'a call', this.down);
    return value;
  }
}

/** One control plane's looks at external Tritons; a second one knows nothing of what this one has begun. */
export class ExternalStand {
  readonly tritons = new Map<string, FakeExternal>();
  readonly bytes = new Map<string, Uint8Array>();
  reconcile!: ExternalReconcile;
  private applier!: ExternalApply;

  constructor(readonly world: FleetWorld) {
    this.restart();
  }

  /** As after a SIGKILL of the control plane. */
  restart(): void {
    const source = this.world.get(ExternalSource);
    const clients = {
      of: ({ id }: { id: string }) => this.tritons.get(id)!.control as unknown as TritonControl,
      forget: () => undefined,
    } as unknown as ExternalTritons;
    const registry = {
      blobUrls: async (hashes: string[]) =>
        hashes.map((sha256) => ({
          sha256,
          sizeBytes: 0,
          url: `data:application/octet-stream;base64,${Buffer.from(this.bytes.get(sha256) ?? []).toString('base64')}`,
        })),
    } as unknown as RegistryService;
    this.applier = new ExternalApply(clients, source, registry, silentLogger);
    this.reconcile = new ExternalReconcile(source, clients, this.applier, silentLogger);
  }

  /** Looks at every server, does what follows, until loads are over. */
  async look(): Promise<void> {
    for (const id of this.tritons.keys()) {
      await this.reconcile.reconcile(id);
      const deadline = Date.now() + 10_000;
      while (!this.holds(id) && this.applier.loading(id).size > 0) {
        if (Date.now() > deadline) throw new Error('a load does not end');
        await new Promise((next) => setTimeout(next, 2));
      }
    }
  }

  private holds(id: string): boolean {
    return this.tritons.get(id)!.hold !== undefined;
  }
}
