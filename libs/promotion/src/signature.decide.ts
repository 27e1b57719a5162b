import type { Signature, TensorSpec } from '@perch/contracts';

/**
 * What callers of stable would find broken in the candidate, one sentence each; [] when they would find nothing. A
 * candidate may ask for less and promise more: a fixed dimension may become free in an input and the other way round in
 * an output. A side that does not tell its tensors is not judged.
 */
export function breakingChanges(stable: Signature | null, candidate: Signature | null): string[] {
  if (!stable || !candidate) return [];
  return [
    ...(stable.inputs.length && candidate.inputs.length ? inputFaults(stable.inputs, candidate.inputs) : []),
    ...(stable.outputs.length && candidate.outputs.length ? outputFaults(stable.outputs, candidate.outputs) : []),
  ];
}

const named = (tensors: readonly TensorSpec[]) => new Map(tensors.map((tensor) => [tensor.name, tensor]));
const words = ({ datatype, shape }: TensorSpec) => `${datatype} [${shape.join(', ')}]`;

function inputFaults(before: readonly TensorSpec[], after: readonly TensorSpec[]): string[] {
  const [old, young] = [named(before), named(after)];
  const gone = before.filter(({ name }) => !young.has(name)).map(({ name }) => `input ${name} is gone`);
  const asked = after
    .filter(({ name, optional }) => !old.has(name) && !optional)
    .map(({ name }) => `input ${name} is new and not optional`);
  const changed = after.flatMap((tensor) => {
    const was = old.get(tensor.name);
    if (!was) return [];
    const same = was.datatype === tensor.datatype && takes(tensor.shape, was.shape);
    return same ? [] : [`input ${tensor.name} is ${words(tensor)}, not ${words(was)}`];
  });
  return [...gone, ...asked, ...changed];
}

function outputFaults(before: readonly TensorSpec[], after: readonly TensorSpec[]): string[] {
  const young = named(after);
  return before.flatMap((was) => {
    const tensor = young.get(was.name);
    if (!tensor) return [`output ${was.name} is gone`];
    // A shape that is no longer promised is judged by the replies themselves.
    const same = was.datatype === tensor.datatype && meets(was.shape, tensor.shape);
    return same ? [] : [`output ${was.name} is ${words(tensor)}, not ${words(was)}`];
  });
}

/** Whatever fits `given` fits `wanted`. */
const takes = (wanted: readonly number[], given: readonly number[]) =>
  wanted.length === given.length && wanted.every((size, at) => size === -1 || size === given[at]);

/** Something fits both. */
const meets = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((size, at) => size === -1 || b[at] === -1 || size === b[at]);
