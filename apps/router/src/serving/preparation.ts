import { type RouteTarget, type RoutingTable, shownMessage } from '@perch/contracts';
import { type Logger, pause } from '@perch/platform';
import type { Slice } from '../table/slice.ts';
import { moduleTargets } from './pipeline.store.ts';
import type { ProcessingStore } from './processing.store.ts';

/** Modules that begin to load side by side: each starts a thread or a process. */
const atOnce = 4;
/** So long a table waits for modules of its own; for the first one of a program nothing is served meanwhile anyway. */
const graceMs = 2_000;
const firstGraceMs = 10_000;
/** A module that failed to load is looked at again; how often it is tried is the store's to say. */
const againMs = 5_000;

export interface Prepared {
  /** Why deployments cannot be served, by id. */
  problems: Record<string, string>;
  /** Modules that take their time, by deployment: no fault of theirs yet, and what served before goes on. */
  loading: Record<string, string>;
  /** Resolves when the table should be applied again: a module has loaded after all, or may be tried again. */
  late: Promise<unknown> | undefined;
}

const ownCells = ({ processing: { module, isolation } }: RouteTarget): boolean =>
  module !== undefined && isolation !== 'inline';

/** Loads processing for every new target of a table; a module that takes long in its own worker keeps nobody else waiting. */
export class Preparation {
  private readonly processing: ProcessingStore;
  private readonly logger: Logger;

  constructor(processing: ProcessingStore, logger: Logger) {
    this.processing = processing;
    this.logger = logger;
  }

  async run(table: RoutingTable, slice: Slice, isFirst: boolean): Promise<Prepared> {
    const problems: Record<string, string> = {};
    const slow: [string, RouteTarget][] = [];
    for (const name in table.endpoints) {
      const route = table.endpoints[name]!;
      for (const target of route.pipeline ? moduleTargets(name, route).values() : route.targets) {
        if (this.processing.find(target)) continue;
        if (ownCells(target)) slow.push([name, target]);
        else await this.load(name, target, problems);
      }
      if (slice.isOver()) await slice.next();
    }
    const loading: Record<string, string> = {};
    if (slow.length === 0) return { problems, loading, late: undefined };
    const works = await this.loadBeside(slow, { problems, loading }, isFirst ? firstGraceMs : graceMs);
    const isLate = slow.some(([, target]) => this.processing.isLoading(target));
    const hasFailed = slow.some(([, target]) => !this.processing.find(target));
    if (isLate) return { problems, loading, late: Promise.allSettled(works) };
    return { problems, loading, late: hasFailed ? pause(againMs) : undefined };
  }

  private async loadBeside(
    slow: [string, RouteTarget][],
    { problems, loading }: Pick<Prepared, 'problems' | 'loading'>,
    waitMs: number,
  ) {
    const untilMs = performance.now() + waitMs;
    const young = new Set<Promise<unknown>>();
    const works: Promise<void>[] = [];
    for (const [name, target] of slow) {
      while (young.size >= atOnce) await Promise.race(young);
      const known = this.processing.isLoading(target);
      const { module } = target.processing;
      loading[target.deployment] = `module ${module!.name}@${module!.number} is still being loaded`;
      const work = this.load(name, target, problems).finally(() => delete loading[target.deployment]);
      works.push(work);
      // what an earlier table began has had its time
      if (known) continue;
      const first: Promise<unknown> = Promise.race([work, pause(Math.max(100, untilMs - performance.now()))]).finally(
        () => young.delete(first),
      );
      young.add(first);
    }
    await Promise.all(young);
    return works;
  }

  private async load(name: string, target: RouteTarget, problems: Record<string, string>): Promise<void> {
    try {
      await this.processing.prepare(target);
      delete problems[target.deployment];
    } catch (error) {
      problems[target.deployment] = shownMessage(error);
      this.logger.warn('processing not loaded', { endpoint: name, deployment: target.deployment, error });
    }
  }
}
