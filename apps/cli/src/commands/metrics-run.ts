import type { Endpoint, EndpointMetrics } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { type MetricsFlags, metricText, planMetrics, withoutMetrics } from '../clearml/metrics.plan.ts';
import { said, tableText } from '../output.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

async function change(
  client: AdminClient,
  name: string,
  plan: (before: EndpointMetrics | undefined) => EndpointMetrics | undefined,
): Promise<Endpoint> {
  const { spec, generation } = await client.call<Endpoint>(endpointPath(name));
  const { metrics, ...rest } = spec;
  const planned = plan(metrics);
  const body = planned ? { ...rest, metrics: planned } : rest;
  return client.call<Endpoint>(endpointPath(name), { method: 'PUT', body, ifMatch: generation });
}

const named = ({ spec }: Endpoint): string => Object.keys(spec.metrics?.variables ?? {}).join(', ') || 'nothing';

export const add: Run = async (invocation, _args, options) => {
  const name = options['endpoint'] as string;
  const client = await invocation.admin();
  const after = await change(client, name, (before) => planMetrics(options as MetricsFlags, before));
  invocation.hint("Every router shows them at /metrics, as perch_endpoint_metric… with the endpoint's labels.");
  return said(after.spec.metrics, `Endpoint ${name} counts ${named(after)} (generation ${after.generation}).`);
};

export const remove: Run = async (invocation, _args, options) => {
  const name = options['endpoint'] as string;
  const client = await invocation.admin();
  const names = options['variable'] as string[] | undefined;
  const after = await change(client, name, (before) => withoutMetrics(before, names, name));
  return said(after.spec.metrics ?? {}, `Endpoint ${name} counts ${named(after)} (generation ${after.generation}).`);
};

export const list: Run = async (invocation, _args, options) => {
  const client = await invocation.admin();
  const wanted = options['endpoint'] as string | undefined;
  const endpoints = wanted
    ? [await client.call<Endpoint>(endpointPath(wanted))]
    : await client.list<Endpoint>('/endpoints');
  const rows = endpoints.flatMap(({ name, spec }) =>
    Object.entries(spec.metrics?.variables ?? {}).map(([variable, metric]) => ({
      endpoint: name,
      variable,
      ...metric,
      sample: spec.metrics!.sample,
    })),
  );
  return {
    value: rows,
    text: () =>
      rows.length === 0
        ? 'No endpoint counts values of its requests (perch metrics add).'
        : tableText(rows, [
            ['endpoint', ({ endpoint }) => endpoint],
            ['metric', ({ variable }) => variable],
            ['kind', ({ type }) => type],
            ['buckets, values', metricText],
            ['share', ({ sample }) => sample],
          ]),
  };
};
