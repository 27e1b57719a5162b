import { AppError, type SplitSpecInput } from '@perch/contracts';
import { weightOf } from '../spec/split-flags.plan.ts';
import { endpointNameOf } from './endpoint.plan.ts';

/** Flags of `model canary` as they were read; both spellings of the prefix. */
export interface CanaryFlags {
  endpoint?: string;
  weights?: string[];
  inputEndpoints?: string[];
  inputEndpointPrefix?: string;
  inputEndpointsPrefix?: string;
}

interface Notes {
  note(sentence: string): void;
}

const fault = (words: string) => new AppError('invalid', words);

function weightsOf({ weights = [] }: CanaryFlags): number[] {
  if (weights.length === 0) throw fault('--weights: which weights? Give one for each endpoint, such as 0.1 0.9');
  const read = weights.map((text) => weightOf(text, '--weights'));
  if (!read.some((weight) => weight > 0)) throw fault('--weights: at least one must be above zero');
  return read;
}

/**
 * `model canary`: ClearML's fixed list, or its prefix, where the first weight is for the newest version. Same words, same
 * meaning, with two differences: a prefix ends at a slash (`text` is not `texts/1`), and what has fewer versions than
 * weights gives the rest to the heaviest instead of widening all.
 */
export function planCanary(flags: CanaryFlags, notes: Notes): SplitSpecInput {
  const name = endpointNameOf(flags.endpoint, undefined, notes);
  const weights = weightsOf(flags);
  const { inputEndpoints, inputEndpointPrefix, inputEndpointsPrefix } = flags;
  if (inputEndpointPrefix !== undefined && inputEndpointsPrefix !== undefined)
    throw fault('--input-endpoint-prefix and --input-endpoints-prefix are one flag; give one of them');
  const prefix = inputEndpointPrefix ?? inputEndpointsPrefix;
  if ((prefix === undefined) === (inputEndpoints === undefined))
    throw fault('give either --input-endpoints or --input-endpoint-prefix');
  if (prefix !== undefined)
    return { kind: 'Split', name, targetPrefix: endpointNameOf(prefix, undefined, notes), newestFirst: weights };
  const targets = inputEndpoints!.map((target) => endpointNameOf(target, undefined, notes));
  if (targets.length !== weights.length)
    throw fault(`--weights: wants ${targets.length}, one for each of --input-endpoints, got ${weights.length}`);
  return { kind: 'Split', name, targets, weights };
}
