import { AppError, type ModelRecording, modelRecording, parseWith, sha256Hex, type Tensors } from '@perch/contracts';
import type { ModelSource } from './model.source.ts';

const tensorsDigest = (tensors: Tensors): string =>
  sha256Hex(
    Object.entries(tensors)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { datatype, shape, bytes }]) => `${name} ${datatype} [${shape}] ${sha256Hex(bytes)}`)
      .join('\n'),
  );
const askDigest = (endpoint: string, body: unknown): string =>
  sha256Hex(`${endpoint} ${Buffer.isBuffer(body) ? sha256Hex(body) : JSON.stringify(body)}`);

/** What a model answered while one fixture ran, by what it was asked. */
export function parseRecording(text: string, path: string): ModelRecording {
  try {
    return parseWith(modelRecording, JSON.parse(text), path);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('invalid', `${path}: is no JSON: ${(error as Error).message}`);
  }
}

/** Answers from a recording; what was not asked then is refused with what to do. */
export function recordedModel(recording: ModelRecording, path: string): ModelSource {
  const again = `record it again: perch processing test … --record --endpoint NAME`;
  return {
    signature: recording.signature,
    maxBatchSize: recording.maxBatchSize,
    async infer(inputs) {
      const found = recording.infer[tensorsDigest(inputs)];
      if (!found) {
        const asked = Object.entries(inputs).map(([name, { datatype, shape }]) => `${name} ${datatype}[${shape}]`);
        throw new AppError('not_found', `${path} holds no answer to ${asked.join(', ')} with these values; ${again}`);
      }
      return Object.fromEntries(
        Object.entries(found).map(([name, { datatype, shape, base64 }]) => [
          name,
          { datatype, shape, bytes: Buffer.from(base64, 'base64') },
        ]),
      );
    },
    async serve(endpoint, body) {
      const key = askDigest(endpoint, body);
      if (!Object.hasOwn(recording.serve, key))
        throw new AppError('not_found', `${path} holds no answer of endpoint ${endpoint} to this body; ${again}`);
      return recording.serve[key];
    },
  };
}

/** The same model, and beside it what it answered. */
export function recordingModel(model: ModelSource): { model: ModelSource; recording: ModelRecording } {
  const recording: ModelRecording = {
    signature: model.signature,
    maxBatchSize: model.maxBatchSize,
    infer: {},
    serve: {},
  };
  return {
    recording,
    model: {
      ...model,
      async infer(inputs) {
        const outputs = await model.infer(inputs);
        recording.infer[tensorsDigest(inputs)] = Object.fromEntries(
          Object.entries(outputs).map(([name, { datatype, shape, bytes }]) => [
            name,
            { datatype, shape: [...shape], base64: Buffer.from(bytes).toString('base64') },
          ]),
        );
        return outputs;
      },
      async serve(endpoint, body, contentType) {
        const reply = await model.serve(endpoint, body, contentType);
        recording.serve[askDigest(endpoint, body)] = reply;
        return reply;
      },
    },
  };
}

const nobody = (what: string): AppError =>
  new AppError(
    'unavailable',
    `the module asks ${what}, and there is neither a recording beside the fixture nor --endpoint NAME (its model answers then; --record keeps the answers)`,
  );

/** For modules that ask nothing. */
export const noModel: ModelSource = {
  signature: { inputs: [], outputs: [] },
  maxBatchSize: 0,
  infer: () => Promise.reject(nobody('its model')),
  serve: (endpoint) => Promise.reject(nobody(`endpoint ${endpoint}`)),
};
