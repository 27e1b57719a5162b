import type { CustomStats } from '../serving/custom-stats.ts';
import { labelText, type MetricFamily } from './snapshot.ts';

type Samples = MetricFamily['samples'];

const sums = (custom: CustomStats, family: string, value: 'sum' | 'count'): Samples =>
  [...custom.series.values()].map((one): [string, number] => [
    `${family}{${labelText({ ...one.arm, name: one.name, kind: one.kind })}}`,
    one[value],
  ]);

const scalars = ({ scalars: all }: CustomStats, family: string): Samples =>
  [...all.values()].flatMap(({ name, arm, bounds, counts, sum }): Samples => {
    const labels = labelText({ ...arm, name });
    let below = 0;
    const buckets = counts.map((count, at): [string, number] => {
      below += count;
      return [`${family}_bucket{${labels},le="${bounds[at] ?? '+Inf'}"}`, below];
    });
    return [...buckets, [`${family}_sum{${labels}}`, sum], [`${family}_count{${labels}}`, below]];
  });

const enums = ({ enums: all }: CustomStats, family: string): Samples =>
  [...all.values()].flatMap(({ name, arm, counts }) =>
    [...counts].map(([value, count]): [string, number] => [`${family}{${labelText({ ...arm, name, value })}}`, count]),
  );

const values = ({ values: all }: CustomStats, family: string): Samples =>
  [...all.values()].map(({ name, arm, last }): [string, number] => [`${family}{${labelText({ ...arm, name })}}`, last]);

/** Metrics of modules, and those that an endpoint says of itself. */
export function observeCustom(custom: CustomStats): MetricFamily[] {
  const sum = 'sum' as const;
  return [
    {
      name: 'perch_processing_samples_total',
      help: 'Calls of observe, count and flag by processing modules, of names that the endpoint does not define.',
      type: 'counter',
      merge: sum,
      samples: sums(custom, 'perch_processing_samples_total', 'count'),
    },
    {
      name: 'perch_processing_value_total',
      help: 'Sum of the values given in those calls.',
      type: 'counter',
      merge: sum,
      samples: sums(custom, 'perch_processing_value_total', 'sum'),
    },
    {
      name: 'perch_endpoint_metric',
      help: 'Values of the metrics of kind scalar that an endpoint defines.',
      type: 'histogram',
      merge: sum,
      samples: scalars(custom, 'perch_endpoint_metric'),
    },
    {
      name: 'perch_endpoint_metric_values_total',
      help: 'How often each value of the metrics of kind enum came; other: one that the endpoint does not name.',
      type: 'counter',
      merge: sum,
      samples: enums(custom, 'perch_endpoint_metric_values_total'),
    },
    {
      name: 'perch_endpoint_metric_last',
      help: 'The last value of the metrics of kind value; of several processes the greatest.',
      type: 'gauge',
      merge: 'max',
      samples: values(custom, 'perch_endpoint_metric_last'),
    },
  ];
}
