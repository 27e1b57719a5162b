import type { NodeTrace } from '@perch/processing/host';

export interface NodeCounts {
  pipeline: string;
  node: string;
  /** By `ok`, `skipped`, `fallback` or an error code. */
  outcomes: Map<string, number>;
  /** Of its items, too. */
  runs: number;
  sumMs: number;
}

const maxNodes = 10_000;

/** What became of the nodes of pipelines. */
export class PipelineStats {
  readonly nodes = new Map<string, NodeCounts>();

  count(pipeline: string, { node, outcome, tookMs, runs }: NodeTrace): void {
    const key = `${pipeline} ${node}`;
    let counts = this.nodes.get(key);
    if (!counts) {
      if (this.nodes.size >= maxNodes) return;
      counts = { pipeline, node, outcomes: new Map(), runs: 0, sumMs: 0 };
      this.nodes.set(key, counts);
    }
    counts.outcomes.set(outcome, (counts.outcomes.get(outcome) ?? 0) + 1);
    counts.runs += runs;
    counts.sumMs += tookMs;
  }

  /** Pipelines that are gone are let go once there are many. */
  keepOnly(pipelines: ReadonlyMap<string, unknown>): void {
    if (this.nodes.size < maxNodes / 2) return;
    for (const [key, { pipeline }] of this.nodes) if (!pipelines.has(pipeline)) this.nodes.delete(key);
  }
}
