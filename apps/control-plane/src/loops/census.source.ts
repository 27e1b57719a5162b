import { Injectable } from '@nestjs/common';
import { type Census, CensusStore } from '@perch/endpoints';
import { LoopRunner, Transactions, WorkStore } from '@perch/platform/database';
import { type RolloutCount, RolloutStore } from '@perch/promotion';

/** A queue is counted no further than this. */
const mostDepth = 10_000;

export interface WholeCensus extends Census {
  rollouts: readonly RolloutCount[];
  /** Keys that are due or worked on, by loop. */
  depths: Readonly<Record<string, number>>;
}

/** How many there are of what in the whole installation. */
@Injectable()
export class CensusSource {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: CensusStore,
    private readonly rollouts: RolloutStore,
    private readonly work: WorkStore,
    private readonly runner: LoopRunner,
  ) {}

  async read(): Promise<WholeCensus> {
    const { manager } = this.transactions;
    return {
      ...(await this.store.count(manager)),
      rollouts: await this.rollouts.census(manager),
      depths: Object.fromEntries(await this.work.depths(this.runner.kinds, mostDepth)),
    };
  }
}
