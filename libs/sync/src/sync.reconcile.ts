import { canonicalJson, type DesiredModel, errorCodeOf, type ObservedModel } from '@perch/contracts';
import { pause } from '@perch/platform';
import { ConfigBook } from './config-book.ts';
import { CrashBook } from './crash-book.ts';
import { LoadMeter } from './load-meter.ts';
import { type Crash, ModelLedger } from './model-ledger.ts';
import { describeModels } from './model-state.decide.ts';
import { ownFiles } from './repository.store.ts';
import { SyncApply } from './sync.apply.ts';
import { observeDisk } from './sync.observe.ts';
import { planSync } from './sync.plan.ts';
import { type Desired, type SyncParts, type SyncSettings, type SyncSnapshot, syncSettings } from './sync-parts.ts';
import { type Action, isOurs, presentNames, type SyncWorld, type Wanted } from './sync-world.ts';
import { TaskQueues } from './task-queues.ts';

interface DesiredMap {
  models: ReadonlyMap<string, DesiredModel>;
  wanted: ReadonlyMap<string, Wanted>;
  removalsAllowed: boolean;
}

const retryLookMs = 250;
const mostRestMs = 200;
const unknownEnd: Crash = { evidence: 'unexplained', words: 'the connection to it broke' };
const nothing: DesiredMap = { models: new Map(), wanted: new Map(), removalsAllowed: false };

/**
 * Keeps one Triton at what is desired: look, compare, act, for as long as it runs. A wake-up only shortens the wait;
 * each model has its own queue of one, so that none waits for another.
 */
export class SyncReconciler {
  private readonly parts: SyncParts;
  private readonly settings: SyncSettings;
  private readonly queues: TaskQueues;
  private readonly ledger: ModelLedger;
  private readonly meter: LoadMeter;
  private readonly now: () => number;
  private readonly configs = new ConfigBook();
  private readonly listeners: ((snapshot: SyncSnapshot) => void)[] = [];
  private desired = nothing;
  private loadsHeld = false;
  private latest: { snapshot: SyncSnapshot; key: string } | undefined;
  private turn = new AbortController();
  private stopping = false;
  private loop: Promise<void> | undefined;
  private tidiedAt = 0;
  private tidying: Promise<void> | undefined;

  constructor(parts: SyncParts, settings: Partial<SyncSettings> = {}) {
    this.parts = parts;
    this.settings = { ...syncSettings, ...settings };
    this.now = parts.now ?? Date.now;
    const { repository, cache, warmUp, memoryKills, trace, metrics, logger, random } = parts;
    const crashes = parts.crashes ?? new CrashBook();
    this.ledger = new ModelLedger({ loadDeadlineMs: this.settings.loadDeadlineMs, crashes, random });
    this.meter = new LoadMeter(parts.usage);
    const triton = () => parts.triton.control;
    const applier = new SyncApply({ triton, repository, cache, warmUp, memoryKills, trace }, this.settings);
    const { ledger, meter, now } = this;
    const crashSince = parts.crashSince ?? (async () => unknownEnd);
    const onEnd = () => this.wake();
    this.queues = new TaskQueues({ applier, ledger, meter, crashSince, metrics, logger, now, onEnd });
  }

  /** The newest look; undefined before the first. */
  get snapshot(): SyncSnapshot | undefined {
    return this.latest?.snapshot;
  }

  /** Told whenever the snapshot differs from the one before. */
  onChange(listener: (snapshot: SyncSnapshot) => void): void {
    this.listeners.push(listener);
  }

  setDesired(desired: Desired): void {
    const models = new Map(Object.entries(desired.models));
    const wanted = new Map<string, Wanted>();
    for (const [name, model] of models) {
      const { digest, measure, needs } = model;
      wanted.set(name, { digest, hashes: ownFiles(model).map(({ sha256 }) => sha256), measure, needs });
    }
    this.ledger.noteDesired(models);
    this.desired = { models, wanted, removalsAllowed: desired.removalsAllowed };
    this.configs.keepOnly(models);
    this.tidiedAt = 0;
    this.wake();
  }

  /** Whether loads wait: for a server that is about to be restarted. */
  holdLoads(held: boolean): void {
    this.loadsHeld = held;
    this.wake();
  }

  /** The server is restarted to be rid of these models; they are not loaded again under their digests. */
  giveUpStuck(names: readonly string[], reason: string): void {
    for (const name of names) {
      const model = this.desired.models.get(name);
      if (model) this.ledger.cured(name, model.digest, reason);
    }
    this.wake();
  }

  /** They came in after all. */
  forgiveStuck(names: readonly string[]): void {
    for (const name of names) this.ledger.forgive(name);
    this.wake();
  }

  /** Look again now. */
  wake(): void {
    this.turn.abort();
  }

  start(): void {
    this.loop ??= this.run();
  }

  /** Ends the loop and what is under way; Triton goes on serving. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wake();
    this.queues.callOff(() => true);
    await this.loop;
    await this.queues.stop();
    await this.tidying;
    await this.parts.cache.close();
    this.parts.triton.close();
  }

  /** One look, one comparison, and the start of what follows from it. Throws when a look fails for a moment. */
  async pass(): Promise<SyncSnapshot> {
    // Taken before the look: what ends meanwhile is looked at again, never acted on from an old view.
    const busy = this.queues.busy();
    const desired = this.desired;
    this.tidyCache(desired);
    const index = await this.parts.triton.look();
    this.ledger.noteIndex(index, this.now(), busy);
    this.callOff(desired);
    const { repository, cache } = this.parts;
    const seen = await observeDisk({ repository, blobs: cache.store }, desired.models, index, (name, model) =>
      index === undefined ? undefined : this.configOf(name, model),
    );
    const nowMs = this.now();
    const world: SyncWorld = {
      ...seen,
      desired: desired.wanted,
      removalsAllowed: desired.removalsAllowed,
      held: { ...this.ledger.held(busy, nowMs), measuring: this.meter.measuring, loadsHeld: this.loadsHeld },
      nowMs,
    };
    const actions = this.stopping ? [] : planSync(world);
    for (const action of actions) {
      if (this.begin(action, desired)) busy.set(action.model, action.kind);
    }
    return this.publish(world, actions);
  }

  private async run(): Promise<void> {
    let quiet = 0;
    while (!this.stopping) {
      this.turn = new AbortController();
      const { signal } = this.turn;
      const started = performance.now();
      const waitMs = await this.turnOnce(quiet);
      // With very many models a look costs; half of the time is left for the steps themselves.
      if (!this.stopping) await pause(Math.min(mostRestMs, performance.now() - started));
      await pause(waitMs, signal);
      quiet = signal.aborted ? 0 : quiet + 1;
    }
  }

  private async turnOnce(quiet: number): Promise<number> {
    const { metrics, logger } = this.parts;
    try {
      const { models, triton } = await this.pass();
      metrics.passes.add({ outcome: 'ok' });
      const { pollMs, idleMs } = this.settings;
      const moving = Object.values(models).some(({ state }) => state === 'loading' || state === 'unloading');
      const base = !triton.live ? retryLookMs : moving ? Math.min(idleMs, pollMs * 2 ** Math.min(quiet, 10)) : idleMs;
      const retryAt = this.ledger.failures.nextRetryMs();
      return retryAt === undefined ? base : Math.min(base, Math.max(10, retryAt - this.now()));
    } catch (error) {
      metrics.passes.add({ outcome: errorCodeOf(error) });
      logger.warn('look at the model server failed', { error });
      return retryLookMs;
    }
  }

  /** Beside everything else: taking big files off a disk takes its time. */
  private tidyCache(desired: DesiredMap): void {
    const nowMs = this.now();
    if (desired === nothing || this.tidying || nowMs - this.tidiedAt < this.settings.evictEveryMs) return;
    this.tidiedAt = nowMs;
    const { cache, logger } = this.parts;
    const tidied = cache.need(new Set([...desired.wanted.values()].flatMap(({ hashes }) => hashes)));
    this.tidying = tidied
      .then(() => cache.evict())
      .catch((error: unknown) => logger.warn('cache was not tidied', { error }))
      .finally(() => {
        this.tidying = undefined;
      });
  }

  /** Pulls nobody wants any more, and loads that Triton will not come back from. */
  private callOff(desired: DesiredMap): void {
    const stuck = this.ledger.stuck(this.now());
    this.queues.callOff(({ kind, name, model }) =>
      kind === 'pull' ? desired.wanted.get(name)?.digest !== model?.digest : kind === 'load' && stuck.has(name),
    );
  }

  private configOf(name: string, model: DesiredModel): string | undefined {
    const config = this.configs.render(name, model, this.parts.triton.facts.gpus);
    if ('text' in config) return config.text;
    this.ledger.failures.giveUp(name, model.digest, config.fault);
    return undefined;
  }

  /** False: it has come out that there is nothing to begin with, and the ledger knows why. */
  private begin({ kind, model: name }: Action, desired: DesiredMap): boolean {
    const model = desired.models.get(name);
    const config = model && (kind === 'stage' || kind === 'renew') ? this.configOf(name, model) : undefined;
    if ((kind === 'stage' || kind === 'renew') && config === undefined) return false;
    this.queues.begin({ kind, name, model, config });
    return true;
  }

  private noteLife(live: boolean): void {
    const { logger, triton } = this.parts;
    if (live === this.latest?.snapshot.triton.live) return;
    if (live) logger.info('model server answers', { name: triton.facts.name, version: triton.facts.version });
    else logger.warn('model server does not answer', { reason: triton.downReason });
  }

  private publish(world: SyncWorld, actions: readonly Action[]): SyncSnapshot {
    const { triton } = this.parts;
    const states = describeModels(world, triton.downReason);
    const models: Record<string, ObservedModel> = {};
    for (const [name, state] of states) models[name] = this.ledger.report(name, state, world.nowMs);
    this.ledger.forgetOthers(new Set([...states.keys(), ...presentNames(world)]));
    const present = [...presentNames(world)].filter((name) => isOurs(name, world.folders.get(name))).sort();
    const orphans = present.filter((name) => !world.desired.has(name));
    const settled = [...states.values()].every(
      ({ state }) => state === 'ready' || state === 'failed' || state === 'stuck',
    );
    const inStep =
      world.index !== undefined &&
      this.desired !== nothing &&
      actions.length === 0 &&
      world.held.busy.size === 0 &&
      settled;
    const snapshot = { triton: triton.facts, models, present, orphans, inStep };
    const key = canonicalJson(snapshot);
    const changed = key !== this.latest?.key;
    this.noteLife(triton.facts.live);
    this.latest = { snapshot, key };
    if (changed) for (const listener of this.listeners) listener(snapshot);
    return snapshot;
  }
}
