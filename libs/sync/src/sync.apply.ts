import { readFile } from 'node:fs/promises';
import {
  AppError,
  type DesiredModel,
  type GoldenRequest,
  goldenNameOf,
  isGoldenPath,
  parseGolden,
  type TensorSpec,
} from '@perch/contracts';
import { TritonFault } from '@perch/triton/control';
import type { BlobCache } from './blobs/blob.cache.ts';
import { newestFailure } from './needs.plan.ts';
import { ownFiles, type RepositoryStore } from './repository.store.ts';
import { Slots } from './slots.ts';
import { indexByName, type SyncTriton } from './sync.observe.ts';
import { type ActionKind, isOurName } from './sync-world.ts';
import type { WarmUpOutcome } from './warm-up.client.ts';

/** What a served model says about itself. */
export interface ModelFacts {
  inputs: TensorSpec[];
  outputs: TensorSpec[];
  maxBatchSize: number;
}

export interface WarmUp {
  warm(model: string, inputs: readonly TensorSpec[], signal: AbortSignal): Promise<WarmUpOutcome>;
  /** Why the answer is not the golden one; undefined: it is. */
  prove(
    model: string,
    golden: GoldenRequest,
    declared: readonly TensorSpec[],
    signal: AbortSignal,
  ): Promise<string | undefined>;
}

export interface ApplyParts {
  triton: () => SyncTriton;
  repository: RepositoryStore;
  cache: BlobCache;
  warmUp: WarmUp;
  /** Processes of the server that the kernel killed for memory so far; null: not known. */
  memoryKills?: () => number | null;
  /** Told each step of each action; crash tests throw from it. */
  trace?: (model: string, step: string) => void;
}

/** One model's action with all it needs. `model` is undefined on the way out. */
export interface Task {
  kind: ActionKind;
  name: string;
  model: DesiredModel | undefined;
  config: string | undefined;
  signal: AbortSignal;
}

/** A load that Triton refused or that failed: the model's own fault, with Triton's words. */
export class LoadFailure extends AppError {
  constructor(reason: string, cause: unknown) {
    super('invalid', reason, { cause, terminal: true });
  }
}

/** Nobody knows what Triton read: the model gets its files again and is loaded again. */
const changedUnderway = (name: string) =>
  new AppError('integrity', `a file of ${name} was changed on disk while the model was loaded`);

const notTheModel = new Set([
  'connection',
  'deadline',
  'cancelled',
  'stopping',
  'overloaded',
  'restricted',
  'unsupported',
]);

/** Does one action on one model. Every action may be repeated at any time, and cut short at any step. */
export class SyncApply {
  private readonly parts: ApplyParts;
  private readonly loadSlots: Slots;
  private readonly loadDeadlineMs: number;

  constructor(parts: ApplyParts, settings: { loadsAtOnce: number; loadDeadlineMs: number }) {
    this.parts = parts;
    this.loadSlots = new Slots(settings.loadsAtOnce);
    this.loadDeadlineMs = settings.loadDeadlineMs;
  }

  /** Resolves to the model's facts after `warm`, else to nothing. */
  async apply(task: Task): Promise<ModelFacts | undefined> {
    switch (task.kind) {
      case 'pull':
        return void (await this.pull(task));
      case 'stage':
        return void (await this.stage(task));
      case 'renew':
        return void (await this.stage(task));
      case 'load':
        return void (await this.load(task));
      case 'warm':
        return this.warm(task);
      case 'unload':
        return void (await this.parts.triton().unload(task.name));
      case 'remove':
        return void (await this.parts.repository.remove(task.name));
    }
  }

  private step(task: Task, step: string): void {
    this.parts.trace?.(task.name, step);
  }

  private async pull(task: Task): Promise<void> {
    const blobs = new Map(ownFiles(task.model!).map((file) => [file.sha256, file]));
    await this.parts.cache.pullAll([...blobs.values()], task.signal);
    this.step(task, 'pulled');
  }

  private async stage(task: Task): Promise<void> {
    const model = task.model!;
    for (const file of ownFiles(model)) {
      // Gone or changed since it was looked at: the next look sees it missing and pulls it again.
      if (!(await this.parts.cache.store.verify(file))) return;
    }
    this.step(task, 'verified');
    const trace = (step: string) => this.step(task, step);
    if (task.kind === 'renew') await this.parts.repository.renew(task.name, model, task.config!, trace);
    else await this.parts.repository.stage(task.name, model, task.config!, trace);
  }

  private async load(task: Task): Promise<void> {
    const release = await this.loadSlots.take();
    const killsBefore = this.parts.memoryKills?.() ?? null;
    try {
      if (task.signal.aborted) return;
      this.step(task, 'load asked');
      await this.parts.triton().load(task.name, { timeoutMs: this.loadDeadlineMs, signal: task.signal });
      this.step(task, 'loaded');
    } catch (error) {
      if (!(error instanceof TritonFault) || notTheModel.has(error.kind)) throw error;
      const words = (await this.reasonOf(task.name)) ?? error.text;
      const killed = killsBefore !== null && (this.parts.memoryKills?.() ?? 0) > killsBefore;
      if (!(await this.parts.repository.isAsStaged(task.name, task.model!))) {
        await this.parts.repository.distrust(task.name); // else Triton's word on it would count
        throw changedUnderway(task.name);
      }
      throw new LoadFailure(killed ? `killed for memory while it loaded: ${words}` : words, error);
    } finally {
      release();
    }
    if (await this.parts.repository.isAsStaged(task.name, task.model!)) return;
    // Under a literal name nothing is taken away: another version folder replaces this one.
    if (isOurName(task.name)) await this.parts.triton().unload(task.name);
    else await this.parts.repository.distrust(task.name);
    throw changedUnderway(task.name);
  }

  /** The index tells why, without the words that the answer puts around it. */
  private async reasonOf(name: string): Promise<string | undefined> {
    const entries = await this.parts
      .triton()
      .index()
      .catch(() => []);
    return newestFailure(indexByName(entries).get(name));
  }

  /** Golden requests of the version, in the order of their names. What they find is the model's own fault, and lasts. */
  private async prove(task: Task, declared: readonly TensorSpec[]): Promise<void> {
    const files = task.model!.files.filter(({ path }) => isGoldenPath(path)).sort((a, b) => (a.path < b.path ? -1 : 1));
    const { store } = this.parts.cache;
    for (const file of files) {
      if (task.signal.aborted) return;
      if (!(await store.verify(file))) throw changedUnderway(task.name);
      const golden = this.goldenOf(await readFile(store.pathOf(file.sha256), 'utf8'), file.path);
      const fault = await this.parts.warmUp.prove(task.name, golden, declared, task.signal);
      if (fault !== undefined) throw new LoadFailure(`golden request ${goldenNameOf(file.path)}: ${fault}`, undefined);
      this.step(task, 'golden request answered');
    }
  }

  private goldenOf(text: string, path: string): GoldenRequest {
    try {
      return parseGolden(text, path);
    } catch (error) {
      throw new LoadFailure((error as Error).message, error);
    }
  }

  private async warm(task: Task): Promise<ModelFacts> {
    const triton = this.parts.triton();
    const [metadata, config] = await Promise.all([triton.modelMetadata(task.name), triton.modelConfig(task.name)]);
    const optional = new Set(config.input?.filter((input) => input.optional).map(({ name }) => name));
    const inputs = metadata.inputs.map((input) => (optional.has(input.name) ? { ...input, optional: true } : input));
    await this.parts.warmUp.warm(task.name, inputs, task.signal);
    this.step(task, 'warmed');
    await this.prove(task, metadata.outputs);
    await this.parts.repository.settle(task.name);
    return { inputs, outputs: metadata.outputs, maxBatchSize: config.max_batch_size ?? 0 };
  }
}
