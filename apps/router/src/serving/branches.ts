import type { Cancellation } from '@perch/triton/inference';

export interface Branch extends Cancellation {
  done(): void;
}

const known = new WeakMap<Cancellation, Branches>();

/** Several calls side by side under one request: when the client goes away, all of them are given up. */
export class Branches {
  private readonly stem: Cancellation;
  private readonly open = new Set<Branch>();

  private constructor(stem: Cancellation) {
    this.stem = stem;
  }

  /** Those of a request; made on first use, since most requests make one call. */
  static of(stem: Cancellation): Branches {
    let branches = known.get(stem);
    if (!branches) {
      branches = new Branches(stem);
      known.set(stem, branches);
    }
    return branches;
  }

  add(): Branch {
    const { stem, open } = this;
    const branch: Branch = {
      get cancelled() {
        return stem.cancelled;
      },
      onCancel: undefined,
      done: () => {
        open.delete(branch);
        if (open.size === 0) stem.onCancel = undefined;
      },
    };
    open.add(branch);
    stem.onCancel = () => {
      for (const one of open) one.onCancel?.();
    };
    return branch;
  }
}
