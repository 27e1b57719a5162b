import { Injectable } from '@nestjs/common';
import { type Actor, AppError, type ApplyResult, type Split, type SplitSpec } from '@perch/contracts';
import { Transactions, type Tx } from '@perch/platform/database';
import { EndpointsStore } from '../endpoints.store.ts';
import { diffSpecs } from '../spec.diff.ts';
import { parseSplit } from './split.plan.ts';
import type { SplitRow } from './split.store.ts';
import { SplitChangeService, type SplitPutOptions, unknownSplit } from './split-change.service.ts';
import { barePrefix, isBelow, namesIn, placeOf } from './split-target.plan.ts';
import { splitEffect, viewSplit } from './split-view.plan.ts';

export type SplitApplyOptions = Omit<SplitPutOptions, 'verb'> & {
  /** Only say what would change. */
  dryRun?: boolean;
};

type Live = SplitRow & { spec: SplitSpec };
const isLive = (row: SplitRow | undefined): row is Live => row?.spec != null;

/** Splits as people change and see them. The table follows by itself. */
@Injectable()
export class SplitService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: EndpointsStore,
    private readonly change: SplitChangeService,
  ) {}

  /** Makes the split as the spec says, whether it exists or not; an equal spec changes nothing. */
  async apply(actor: Actor, input: unknown, options: SplitApplyOptions = {}): Promise<ApplyResult> {
    const spec = parseSplit(input);
    const { manager } = this.transactions;
    if (!options.dryRun) {
      const { before, generation, changed } = await this.change.put(actor, spec, { ...options, verb: 'apply' });
      const outcome = !changed ? 'unchanged' : before?.spec ? 'updated' : 'created';
      return { ...(await this.describe(manager, before?.spec ?? null, spec)), outcome, generation };
    }
    const before = await this.stores.splits.get(manager, spec.name);
    await this.change.check(manager, actor, spec, before, { ...options, verb: 'apply' });
    const result = await this.describe(manager, before?.spec ?? null, spec);
    const outcome = !before?.spec ? 'would_create' : result.changes.length > 0 ? 'would_update' : 'unchanged';
    return { ...result, outcome, generation: before?.generation ?? 0 };
  }

  /** Throws `conflict` with the differences when the split exists. */
  async create(actor: Actor, input: unknown, reason = ''): Promise<Split> {
    const spec = parseSplit(input);
    await this.change.put(actor, spec, { verb: 'create', reason });
    return this.get(spec.name);
  }

  /** Throws `not_found`, or `precondition_failed` with both sides' differences. */
  async replace(actor: Actor, name: string, input: unknown, options: SplitApplyOptions = {}): Promise<Split> {
    const spec = parseSplit(input);
    if (spec.name !== name)
      throw new AppError('invalid', `split ${name}: the spec names ${spec.name}; a split keeps its name`);
    await this.change.put(actor, spec, { ...options, verb: 'replace' });
    return this.get(name);
  }

  /** Takes the name away; what it sent to goes on under the names of the endpoints. Throws `not_found`. */
  async remove(actor: Actor, name: string, options: Omit<SplitPutOptions, 'verb'> = {}): Promise<void> {
    await this.change.remove(actor, name, options);
  }

  async get(name: string): Promise<Split> {
    const { manager } = this.transactions;
    const row = await this.stores.splits.get(manager, name);
    if (!isLive(row)) throw unknownSplit(name);
    return (await this.views(manager, [row]))[0]!;
  }

  /** In order of names, from after `after`; at most `limit`. */
  async list(after: string | null, limit: number): Promise<Split[]> {
    const { manager } = this.transactions;
    const rows = await this.stores.splits.list(manager, after, limit);
    return this.views(manager, rows.filter(isLive));
  }

  private async views(tx: Tx, rows: readonly Live[]): Promise<Split[]> {
    const routes = await this.routesOf(tx, rows.map(({ spec }) => spec)); // biome-ignore format: one row reads better
    const standings = await this.stores.splits.standings(tx, [...routes.keys()]);
    return rows.map((row) => viewSplit(row, membersOf(row.spec, routes), standings, routes.has(row.name)));
  }

  /** Routes of all endpoints that these splits may mean, and of those of their own names. */
  private routesOf(tx: Tx, specs: readonly SplitSpec[]) {
    const names = specs.flatMap(({ name, targets = [] }) => [name, ...targets.flatMap(namesIn)]);
    const prefixes = specs.flatMap(({ targetPrefix }) => (targetPrefix ? [barePrefix(targetPrefix)] : []));
    return this.stores.splits.memberRoutes(tx, [...new Set(names)], [...new Set(prefixes)]);
  }

  private async describe(tx: Tx, before: SplitSpec | null, after: SplitSpec) {
    const routes = await this.routesOf(tx, before ? [before, after] : [after]);
    const members = membersOf(after, routes);
    const exists = (name: string) => routes.has(name);
    const namedIn = (spec: SplitSpec | null) =>
      (spec?.targets ?? []).filter((target) => placeOf(target, exists)?.version != null);
    const keyed = [...members]
      .filter(([, route]) => route?.access === 'key')
      .map(([name]) => name)
      .sort();
    const named = { before: namedIn(before), after: namedIn(after) };
    const changes = diffSpecs(before, after);
    const facts = { members, own: routes.has(after.name), keyed, named };
    const effect = before && changes.length === 0 ? [] : splitEffect(before, after, facts);
    return { name: after.name, changes, effect };
  }
}

/** Of all routes those of one split. */
const membersOf = <T>({ targets = [], targetPrefix }: SplitSpec, routes: ReadonlyMap<string, T>): Map<string, T> => {
  const names = new Set(targets.flatMap(namesIn));
  const prefix = targetPrefix && barePrefix(targetPrefix);
  return new Map([...routes].filter(([name]) => names.has(name) || (prefix && isBelow(name, prefix))));
};
