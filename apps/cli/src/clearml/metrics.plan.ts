import { AppError, type EndpointMetric, type EndpointMetrics } from '@perch/contracts';

/** Flags of `metrics add` as they were read. */
export interface MetricsFlags {
  variableScalar?: string[];
  variableEnum?: string[];
  variableValue?: string[];
  logFreq?: string;
}

const fault = (words: string) => new AppError('invalid', words);

function pair(text: string, flag: string, example: string): [name: string, value: string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw fault(`${flag} ${text}: wants ${example}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function numberOf(text: string, flag: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw fault(`${flag}: "${text}" is no number`);
  return value;
}

/** `0,0.5,1`: upper bounds. `0/1/5`: five of them, evenly from the first to the second number. */
function bounds(text: string, flag: string): number[] {
  const range = text.split('/');
  if (range.length === 1) return text.split(',').map((one) => numberOf(one, flag));
  const [from, to, count] = range.map((one) => numberOf(one, flag));
  if (range.length !== 3 || !(to! > from!) || !Number.isInteger(count) || count! < 2 || count! > 64)
    throw fault(`${flag}: wants least/greatest/number of buckets (2 to 64), such as x1=0.0/1.0/5`);
  return Array.from({ length: count! }, (_, at) =>
    Number((from! + ((to! - from!) * at) / (count! - 1)).toPrecision(12)),
  );
}

/** What `metrics add` says, over what there was: the same name is said anew. Throws `invalid` naming the flag. */
export function planMetrics(flags: MetricsFlags, before: EndpointMetrics | undefined): EndpointMetrics {
  const added = new Map<string, EndpointMetric>();
  for (const text of flags.variableScalar ?? []) {
    const [name, value] = pair(text, '--variable-scalar', 'name=0,0.5,1 or name=0/1/5');
    added.set(name, { type: 'scalar', buckets: bounds(value, `--variable-scalar ${name}`) });
  }
  for (const text of flags.variableEnum ?? []) {
    const [name, value] = pair(text, '--variable-enum', 'name=cat,dog');
    added.set(name, { type: 'enum', values: value.split(',') });
  }
  for (const name of flags.variableValue ?? []) added.set(name, { type: 'value' });
  const sample = flags.logFreq === undefined ? before?.sample : numberOf(flags.logFreq, '--log-freq');
  if (added.size === 0 && flags.logFreq === undefined)
    throw fault('which metrics? Give --variable-scalar, --variable-enum or --variable-value');
  return { variables: { ...before?.variables, ...Object.fromEntries(added) }, sample: sample ?? 1 };
}

/** Without `names`: all of them. Undefined: none is left. Throws `not_found` for one that is not there. */
export function withoutMetrics(
  before: EndpointMetrics | undefined,
  names: readonly string[] | undefined,
  endpoint: string,
): EndpointMetrics | undefined {
  const known = Object.keys(before?.variables ?? {});
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new AppError(
      'not_found',
      `endpoint ${endpoint} has no metric ${unknown}; it has ${known.join(', ') || 'none'}`,
    );
  const left = Object.entries(before?.variables ?? {}).filter(([name]) => names !== undefined && !names.includes(name));
  return before && left.length > 0 ? { ...before, variables: Object.fromEntries(left) } : undefined;
}

export function metricText(metric: EndpointMetric): string {
  if (metric.type === 'scalar') return metric.buckets.join(', ');
  return metric.type === 'enum' ? metric.values.join(', ') : '';
}
