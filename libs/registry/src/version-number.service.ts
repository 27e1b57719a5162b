import { Inject, Injectable } from '@nestjs/common';
import { versionClaimKey } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';
import type { ModelEntity } from './model.entity.ts';
import { ModelStore } from './model.store.ts';

/** Gives numbers, each once: the counter orders them, the claim in the store remembers them when the database forgets. */
@Injectable()
export class VersionNumberService {
  constructor(
    private readonly models: ModelStore,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
  ) {}

  lock(tx: Tx, project: string, name: string): Promise<ModelEntity> {
    return this.models.lock(tx, project, name);
  }

  /**
   * The next number of a locked model. `claim` is what the store keeps about it. A process that dies between claim and
   * commit leaves a number that nobody gets.
   */
  async next(tx: Tx, model: ModelEntity, claim: Record<string, unknown>): Promise<number> {
    const number = await this.claim(model.nextNumber, (n) => versionClaimKey(model.project, model.name, n), claim);
    await this.models.moveCounter(tx, model.id, number + 1);
    return number;
  }

  /** The first number from `from` on that nobody claimed in the store, claimed. */
  async claim(from: number, key: (number: number) => string, claim: Record<string, unknown>): Promise<number> {
    const body = (number: number) => Buffer.from(JSON.stringify({ number, ...claim }));
    let number = from;
    while (!(await this.store.putIfAbsent(key(number), body(number))))
      number = await firstFree(number + 1, async (n) => (await this.store.head(key(n))) !== undefined);
    return number;
  }
}

/**
 * Smallest free number from `from` on, where taken ones stand without gaps (each was given after the one before): steps
 * that double, then halves, because a restored database may be thousands of versions behind.
 */
export async function firstFree(from: number, taken: (number: number) => Promise<boolean>): Promise<number> {
  let low = from - 1; // taken, or just before the start
  let step = 1;
  while (await taken(low + step)) {
    low += step;
    step *= 2;
  }
  let high = low + step; // free
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await taken(middle)) low = middle;
    else high = middle;
  }
  return high;
}
