import { digestOf, tritonModelName } from '@perch/contracts';
import type { ModelVariant, NeededModel, Requirements } from '@perch/fleet';
import { LayoutFault } from './layout.plan.ts';

/** What is put beside a Triton model: others that it needs, and what it is told of them. */
export interface Beside {
  /** Those that it calls itself; what these need in turn comes along. */
  needs: readonly (NeededModel & { variant: ModelVariant })[];
  /** Parameters of its configuration, e.g. the Perch name of a model that its code calls. */
  parameters: Readonly<Record<string, string>>;
}

/** The name under which a server holds a needed model. */
export const heldName = ({ as, tritonModel }: Pick<NeededModel, 'as' | 'tritonModel'>): string => as ?? tritonModel;

/**
 * A variant with what it needs, as a Triton model of its own: its identity covers what it needs, so that a newer one of
 * these is another model, which is proved before it serves. Throws `LayoutFault` when two models want one literal name.
 */
export function withNeeds(variant: ModelVariant, of: { name: string; number: number }, beside: Beside): ModelVariant {
  if (beside.needs.length === 0) return variant;
  const names = [...new Set([...(variant.model.needs ?? []), ...beside.needs.map(heldName)])].sort();
  const engine = { ...variant.model.engine, parameters: { ...variant.model.engine.parameters, ...beside.parameters } };
  const needs = closureOf([
    ...variant.needs,
    ...beside.needs.map(({ variant: _variant, ...need }) => need),
    ...beside.needs.flatMap((need) => need.variant.needs),
  ]);
  const held = names.map((name) => [name, needs.find((need) => heldName(need) === name)!.model.digest]);
  const digest = digestOf({ identity: variant.model.digest, parameters: beside.parameters, needs: held });
  return {
    tritonModel: tritonModelName(of.name, of.number, digest),
    model: { ...variant.model, engine, digest, needs: names },
    needs,
    requires: beside.needs.reduce((all, { variant: other }) => both(all, other.requires), variant.requires),
  };
}

function closureOf(needs: readonly NeededModel[]): NeededModel[] {
  const held = new Map<string, NeededModel>();
  for (const need of needs) {
    const name = heldName(need);
    const other = held.get(name);
    if (other && other.model.digest !== need.model.digest)
      throw new LayoutFault(
        `the name ${name} is wanted for two different models (${other.of ?? other.tritonModel} and ${need.of ?? need.tritonModel}); hand one of them over with as: parameter`,
      );
    held.set(name, other ?? need);
  }
  return [...held.values()].sort((a, b) => (heldName(a) < heldName(b) ? -1 : 1));
}

/** What a server must have for both; of two versions of TensorRT or ONNX the first counts, since no server has two. */
const both = (a: Requirements, b: Requirements): Requirements => ({
  backend: a.backend,
  gpu: a.gpu || b.gpu,
  tensorrt: a.tensorrt ?? b.tensorrt,
  onnx:
    a.onnx && b.onnx
      ? { opset: Math.max(a.onnx.opset, b.onnx.opset), ir: Math.max(a.onnx.ir, b.onnx.ir) }
      : (a.onnx ?? b.onnx),
  memoryBytes: a.memoryBytes === null && b.memoryBytes === null ? null : (a.memoryBytes ?? 0) + (b.memoryBytes ?? 0),
});

/** The composing models of an ensemble, each under its own name. */
export const besideSteps = (steps: readonly ModelVariant[]): Beside => ({
  needs: steps.map((variant) => ({ tritonModel: variant.tritonModel, as: null, model: variant.model, variant })),
  parameters: {},
});
