/** Metrics of one process as plain values, so that several processes can be added up. */
export interface MetricFamily {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** How processes add up. */
  merge: 'sum' | 'min' | 'max';
  /** Name of the series with its labels, as the text format writes it, and its value. */
  samples: [series: string, value: number][];
}

const escapes: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };
const escapeLabel = (value: string): string => value.replace(/[\\"\n]/g, (one) => escapes[one]!);

export const labelText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(',');

const mergers = {
  sum: (a: number, b: number) => a + b,
  min: Math.min,
  max: Math.max,
};

export function mergeSnapshots(snapshots: readonly (readonly MetricFamily[])[]): MetricFamily[] {
  const families = new Map<string, MetricFamily & { bySeries: Map<string, number> }>();
  for (const family of snapshots.flat()) {
    let merged = families.get(family.name);
    if (!merged) {
      merged = { ...family, samples: [], bySeries: new Map() };
      families.set(family.name, merged);
    }
    for (const [series, value] of family.samples) {
      const before = merged.bySeries.get(series);
      merged.bySeries.set(series, before === undefined ? value : mergers[family.merge](before, value));
    }
  }
  return [...families.values()].map(({ bySeries, ...family }) => ({ ...family, samples: [...bySeries] }));
}

export function renderSnapshot(families: readonly MetricFamily[]): string {
  let text = '';
  for (const { name, help, type, samples } of families) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const [series, value] of samples) text += `${series} ${value}\n`;
  }
  return text;
}
