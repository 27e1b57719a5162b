import { canonicalJson, type EndpointSpec, type SpecChange } from '@perch/contracts';

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Differences by path, members of objects one by one and lists as a whole; absent = undefined. Ordered by path. */
export function diffSpecs(before: object | null, after: object | null): SpecChange[] {
  return diffValues('', before ?? {}, after ?? {});
}

function diffValues(path: string, before: unknown, after: unknown): SpecChange[] {
  if (isRecord(before) && isRecord(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return keys.flatMap((key) => diffValues(path === '' ? key : `${path}.${key}`, before[key], after[key]));
  }
  if (canonicalJson(before ?? null) === canonicalJson(after ?? null)) return [];
  return [{ path, before: before ?? null, after: after ?? null }];
}

function withProcessing({ processing }: EndpointSpec): string {
  if (!processing) return 'with the processing that the version carries';
  const { builtin, module, isolation = 'worker' } = processing;
  return module ? `with module ${module} (isolation ${isolation})` : `with the built-in ${builtin}`;
}

const touches = (changes: readonly SpecChange[], ...roots: string[]) =>
  changes.some(({ path }) => roots.some((root) => path === root || path.startsWith(`${root}.`)));

/** What follows from a change, in sentences for a person. `serving`: the versions that serve now, newest first. */
export function effectOf(
  before: EndpointSpec | null,
  after: EndpointSpec,
  wanted: readonly number[],
  serving: readonly number[],
): string[] {
  const changes = diffSpecs(before, after);
  if (before !== null && changes.length === 0) return [];
  const effect: string[] = [];
  const settings = touches(changes, 'engine');
  const load = wanted.filter((version) => before === null || settings || !serving.includes(version));
  const anew = touches(changes, 'processing') ? wanted.filter((version) => !load.includes(version)) : [];
  const drop = before === null ? [] : serving.filter((version) => !wanted.includes(version));
  if (load.length > 0) {
    const numbers = load.join(', ');
    const model = after.model.none
      ? `module ${after.processing?.module}`
      : `version ${numbers} of ${after.model.project}/${after.model.name}`;
    const onServers = `${after.fleet.replicas} server${after.fleet.replicas === 1 ? '' : 's'} of pool ${after.fleet.pool}`;
    const custom = after.engine.platform === 'custom';
    const alone = after.model.none ? '' : ' by its module';
    effect.push(custom ? `runs ${model}${alone} alone, on no server` : `loads ${model} on ${onServers}`);
  }
  if (serving.length > 0 && load.length > 0) effect.push(`version ${serving.join(', ')} serves until that is ready`);
  if (anew.length > 0)
    effect.push(`runs version ${anew.join(', ')} ${withProcessing(after)}; no model is loaded again`);
  if (drop.length > 0 && wanted.length > 0) effect.push(`then unloads version ${drop.join(', ')}`);
  if (after.stopped) effect.push('it is stopped: nothing of it is served until it is started');
  if (drop.length > 0 && wanted.length === 0)
    effect.push(`unloads version ${drop.join(', ')}: nothing is served any more`);
  if (wanted.length === 0 && !after.stopped)
    effect.push(`no version of ${after.model.project}/${after.model.name} matches: waits for one`);
  if (before !== null && load.length === 0 && touches(changes, 'fleet')) effect.push('moves replicas between servers');
  if (before !== null && touches(changes, 'traffic')) effect.push(`shares traffic by mode ${after.traffic.mode}`);
  if (before !== null && touches(changes, 'limits', 'access', 'idempotent'))
    effect.push('routers apply the new limits and access within seconds');
  if (effect.length === 0) effect.push('no effect on what is served');
  return effect;
}
