import { durationBuckets } from '@perch/platform';
import type { CustomStats } from '../serving/custom-stats.ts';
import type { DeploymentStore } from '../serving/deployment.store.ts';
import type { Dispatch } from '../serving/dispatch.ts';
import type { EvidenceBook } from '../serving/evidence-book.ts';
import type { NodeCounts, PipelineStats } from '../serving/pipeline-stats.ts';
import { type ArmStats, stages } from '../serving/request-stats.ts';
import type { RouterStats } from '../serving/router-stats.ts';
import type { ServingTables } from '../serving/serving-tables.ts';
import type { Shadow } from '../serving/shadow.ts';
import type { TrialStats } from '../serving/trial-stats.ts';
import { observeCustom } from './custom.observe.ts';
import { labelText, type MetricFamily } from './snapshot.ts';

export interface Observed {
  tables: ServingTables;
  deployments: DeploymentStore;
  dispatch: Dispatch;
  evidence: EvidenceBook;
  stats: RouterStats;
  custom: CustomStats;
  shadow: Shadow;
  trialStats: TrialStats;
  nodeStats: PipelineStats;
}

type Samples = MetricFamily['samples'];

function requestSamples(arms: readonly ArmStats[]): Samples {
  return arms.flatMap(({ labels, ok, failures }) =>
    [...(ok > 0 ? ([['ok', ok]] as const) : []), ...failures].map(([outcome, count]): [string, number] => [
      `perch_router_requests_total{${labelText({ ...labels, outcome })}}`,
      count,
    ]),
  );
}

function histogram(name: string, labels: ArmStats['labels'], buckets: Float64Array, sumMs: number): Samples {
  const samples: Samples = [];
  const text = labelText(labels);
  let count = 0;
  durationBuckets.forEach((limit, index) => {
    count += buckets[index]!;
    samples.push([`${name}_bucket{${text},le="${limit}"}`, count]);
  });
  count += buckets[durationBuckets.length]!;
  samples.push([`${name}_bucket{${text},le="+Inf"}`, count]);
  samples.push([`${name}_sum{${text}}`, sumMs / 1_000]);
  samples.push([`${name}_count{${text}}`, count]);
  return samples;
}

const durationSamples = (arms: readonly ArmStats[]): Samples =>
  arms.flatMap(({ labels, buckets, sumMs }) =>
    histogram('perch_router_request_duration_seconds', labels, buckets!, sumMs),
  );

const firstEventSamples = (arms: readonly ArmStats[]): Samples =>
  arms.flatMap(({ labels, firstEvents, firstEventSumMs }) =>
    firstEvents ? histogram('perch_router_first_event_seconds', labels, firstEvents, firstEventSumMs) : [],
  );

const stageSamples = (arms: readonly ArmStats[]): Samples =>
  arms.flatMap(({ labels, stageMs }) =>
    stages.map((stage, index): [string, number] => [
      `perch_router_stage_seconds_total{${labelText({ ...labels, stage })}}`,
      stageMs[index]! / 1_000,
    ]),
  );

/** Two series: without a retry there is nothing to say. */
const retrySamples = (arms: readonly ArmStats[]): Samples =>
  arms
    .filter(({ retries }) => retries > 0)
    .map(({ labels, retries }) => [`perch_router_version_retries_total{${labelText(labels)}}`, retries]);

const trialSamples = (counts: ReadonlyMap<string, number>, series: string): Samples =>
  [...counts].map(([labels, count]) => [`${series}{${labels}}`, count]);

const nodeSamples = ({ nodes }: PipelineStats, series: string, value: (counts: NodeCounts) => number): Samples =>
  [...nodes.values()].map((one) => [`${series}{${labelText({ pipeline: one.pipeline, node: one.node })}}`, value(one)]);

interface Figure {
  name: string;
  help: string;
  type: MetricFamily['type'];
  merge?: MetricFamily['merge'];
  read(observed: Observed): Samples | number;
}

/** Arms that nothing was sent to yet would make most of the text in a big installation. */
const armsOf = ({ deployments }: Observed): ArmStats[] =>
  [...deployments.stats.values()].filter((arm) => arm.requests > 0);

const inFlight = ({ tables }: Observed): number =>
  [...(tables.current?.deployments.values() ?? [])].reduce((sum, deployment) => sum + deployment.gauge.inFlight, 0);

function lapsedCandidates({ tables, evidence }: Observed): number {
  const now = performance.now();
  let count = 0;
  for (const route of tables.current?.endpoints.values() ?? []) if (evidence.isLapsed(route, now)) count += 1;
  return count;
}

const figures: Figure[] = [
  {
    name: 'perch_router_requests_total',
    help: 'Requests by their outcome: ok or an error code.',
    type: 'counter',
    read: (observed) => requestSamples(armsOf(observed)),
  },
  {
    name: 'perch_router_request_duration_seconds',
    help: 'From the complete body to the reply.',
    type: 'histogram',
    read: (observed) => durationSamples(armsOf(observed)),
  },
  {
    name: 'perch_router_first_event_seconds',
    help: 'From the complete body to the first event, of replies that came in events.',
    type: 'histogram',
    read: (observed) => firstEventSamples(armsOf(observed)),
  },
  {
    name: 'perch_router_stage_seconds_total',
    help: 'Time spent in each stage.',
    type: 'counter',
    read: (observed) => stageSamples(armsOf(observed)),
  },
  {
    name: 'perch_router_refused_total',
    help: 'Requests refused before a version was chosen.',
    type: 'counter',
    read: ({ stats }) =>
      [...stats.refusals].map(([code, count]) => [`perch_router_refused_total{${labelText({ code })}}`, count]),
  },
  {
    name: 'perch_router_retries_total',
    help: 'Tries on another server.',
    type: 'counter',
    read: ({ dispatch }) => dispatch.retries,
  },
  {
    name: 'perch_router_version_retries_total',
    help: 'Tries on another server, by the version that was tried.',
    type: 'counter',
    read: (observed) => retrySamples(armsOf(observed)),
  },
  { name: 'perch_router_requests_in_flight', help: 'Requests in hand.', type: 'gauge', read: inFlight },
  {
    name: 'perch_router_requests_waiting',
    help: 'Requests that wait for a ready server.',
    type: 'gauge',
    read: ({ dispatch }) => dispatch.waiting.size,
  },
  {
    name: 'perch_router_servers_out_of_use',
    help: 'Pairs of model and server that get no requests for now.',
    type: 'gauge',
    merge: 'max',
    read: ({ deployments }) => deployments.outOfUse(),
  },
  {
    name: 'perch_router_table_revision',
    help: 'Revision of the routing table in force; -1 before the first.',
    type: 'gauge',
    merge: 'min',
    read: ({ tables }) => tables.current?.revision ?? -1,
  },
  {
    name: 'perch_router_candidates_lapsed',
    help: 'Rollouts whose candidate gets nothing, since no report was taken for longer than the lease.',
    type: 'gauge',
    merge: 'max',
    read: lapsedCandidates,
  },
  {
    name: 'perch_router_fallbacks_total',
    help: 'Requests that stable answered for the candidate, by why and by the version of the candidate.',
    type: 'counter',
    read: ({ trialStats }) => trialSamples(trialStats.fallbacks.counts, 'perch_router_fallbacks_total'),
  },
  {
    name: 'perch_router_fallbacks_refused_total',
    help: 'Requests that stable would have answered, had the budget not been spent.',
    type: 'counter',
    read: ({ trialStats }) => trialSamples(trialStats.refused.counts, 'perch_router_fallbacks_refused_total'),
  },
  {
    name: 'perch_router_contract_faults_total',
    help: 'Replies during a rollout that are not what their model declares.',
    type: 'counter',
    read: ({ trialStats }) => trialSamples(trialStats.faults.counts, 'perch_router_contract_faults_total'),
  },
  {
    name: 'perch_router_shadows_total',
    help: 'Copies of requests for a candidate, by what became of them.',
    type: 'counter',
    read: ({ trialStats }) => trialSamples(trialStats.shadows.counts, 'perch_router_shadows_total'),
  },
  {
    name: 'perch_router_shadows_in_flight',
    help: 'Copies of requests on their way to a candidate.',
    type: 'gauge',
    read: ({ shadow }) => shadow.inFlight,
  },
  {
    name: 'perch_pipeline_nodes_total',
    help: 'Nodes of pipelines that ended, by outcome: ok, skipped, fallback or an error code.',
    type: 'counter',
    read: ({ nodeStats }) =>
      [...nodeStats.nodes.values()].flatMap(({ pipeline, node, outcomes }) =>
        [...outcomes].map(([outcome, count]): [string, number] => [
          `perch_pipeline_nodes_total{${labelText({ pipeline, node, outcome })}}`,
          count,
        ]),
      ),
  },
  {
    name: 'perch_pipeline_node_runs_total',
    help: 'Runs of those nodes: one, or one for each item of a map.',
    type: 'counter',
    read: ({ nodeStats }) => nodeSamples(nodeStats, 'perch_pipeline_node_runs_total', ({ runs }) => runs),
  },
  {
    name: 'perch_pipeline_node_seconds_total',
    help: 'Time from the beginning to the end of those nodes.',
    type: 'counter',
    read: ({ nodeStats }) => nodeSamples(nodeStats, 'perch_pipeline_node_seconds_total', ({ sumMs }) => sumMs / 1_000),
  },
];

/** Everything this process has counted, read at a scrape. */
export function observeRouter(observed: Observed): MetricFamily[] {
  const families = figures.map(({ name, help, type, merge = 'sum', read }): MetricFamily => {
    const value = read(observed);
    return { name, help, type, merge, samples: typeof value === 'number' ? [[name, value]] : value };
  });
  return [...families, ...observeCustom(observed.custom)];
}
