/**
 * A value with picks in it: a string that begins with `$` is replaced by what it points at (`$body.image`,
 * `$detect.boxes[0]`, `$item`), `$$` stands for one `$`; lists and objects are gone through.
 */
export type PipelineValue = string | number | boolean | null | PipelineValue[] | { [key: string]: PipelineValue };

/** True when what `pick` points at is there and is what is asked; only `pick`: when it is neither absent, null, false, 0 nor empty. */
export interface PipelineCondition {
  pick: string;
  equals?: PipelineValue;
  notEquals?: PipelineValue;
  above?: number;
  below?: number;
  exists?: boolean;
}

export interface PipelineNode {
  /** Exactly one of these two. An endpoint's own traffic rule (its canary, too) decides which version answers. */
  endpoint?: string;
  module?: string;
  /** Of `endpoint`: this one instead of what its traffic rule says. */
  version?: number;
  isolation?: 'inline' | 'worker' | 'process';
  options?: Record<string, unknown>;
  /** The body it is given; its picks say which nodes it waits for. Default: the pipeline's own body. */
  input?: PipelineValue;
  /** It waits for these as well. */
  after?: string[];
  when?: PipelineCondition;
  /** Once for each element of a list, as `$item` (and `$index`); its result is the list of results, in order. */
  map?: { over: string; concurrency: number };
  /** Of one run of it; never more than the pipeline's own. */
  timeoutMs?: number;
  /** Its result when it fails or is late. Absent: then the whole request fails. */
  fallback?: { value: PipelineValue };
  /** How many runs of it at once in one router process; further ones wait. */
  concurrency?: number;
  /** Model instances that its endpoint must have; obeyed when the endpoint is the pipeline's own to set, else refused. */
  instances?: number;
  device?: 'cpu' | 'gpu';
}

/** `concurrency` of `map`: default 8. */
export type PipelineNodeInput = Omit<PipelineNode, 'map'> & { map?: { over: string; concurrency?: number } };

/** A pipeline as it is written. */
export interface PipelineSpecInput {
  kind: 'Pipeline';
  name: string;
  /** 1 to 64. */
  nodes: Record<string, PipelineNodeInput>;
  /** The reply, with picks. */
  output: PipelineValue;
  /** Defaults: 60,000 ms, 64 MiB. */
  limits?: { timeoutMs?: number; maxBodyBytes?: number };
  /** Default key. */
  access?: { inference?: 'key' | 'public' };
  description?: string;
}
