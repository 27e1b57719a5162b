import type { DesiredModel } from '@perch/contracts';

/** What a server must have to run a Triton model. Null: nothing is known to be needed. */
export interface Requirements {
  /** Name of the back-end, e.g. `onnxruntime`; null for ensembles, which need none. */
  backend: string | null;
  gpu: boolean;
  /** A TensorRT plan runs on the version that built it, on these compute capabilities (`major.minor`; empty: any). */
  tensorrt: { version: string; computeCapabilities: string[] } | null;
  onnx: { opset: number; ir: number } | null;
  /** First guess of a user; what was measured counts more. */
  memoryBytes: number | null;
}

/**
 * A Triton model that must be on the same server, under its own name or, `as`, under a name that code calls. Its
 * document key is `as ?? tritonModel`; `model.needs` may name keys of others that it needs itself.
 */
export interface NeededModel {
  tritonModel: string;
  as: string | null;
  model: DesiredModel;
  /** `project/name` that was asked for: successive versions of one used model may follow each other under one literal name. */
  of?: string;
}

/** One way to run a deployment: a Triton model, all that it needs beside it (the whole closure), and which servers can run it. */
export interface ModelVariant {
  tritonModel: string;
  model: DesiredModel;
  needs: NeededModel[];
  requires: Requirements;
}

/** Key of a needed model in a server's document. */
export const neededName = ({ as, tritonModel }: Pick<NeededModel, 'as' | 'tritonModel'>): string => as ?? tritonModel;
