import { AppError, type DataType, type Signature, type Tensors } from '@perch/contracts';
import type { AdminClient, RawAnswer } from '../admin.client.ts';
import type { ModelSource } from './model.source.ts';

const timeoutMs = 60_000;
const headerLength = 'inference-header-content-length';

interface WireTensor {
  name: string;
  datatype: DataType;
  shape: number[];
  parameters?: { binary_data_size?: number };
  data?: unknown;
}

/** The model behind an endpoint of the installation, over `/v2` of its router: tensors in binary, processing left out. */
export async function endpointModel(client: AdminClient, endpoint: string): Promise<ModelSource> {
  const path = `/v2/models/${encodeURIComponent(endpoint)}`;
  const about = refused(await client.readServing(path, timeoutMs), endpoint);
  const { inputs, outputs } = JSON.parse(about.body.toString('utf8')) as Signature;
  return {
    signature: { inputs, outputs },
    maxBatchSize: inputs.every(({ shape }) => shape[0] === -1) ? 64 : 0,
    async infer(tensors) {
      const { head, body } = inferRequest(tensors);
      const headers = { 'content-type': 'application/octet-stream', [headerLength]: String(head) };
      return inferAnswer(refused(await client.serve(`${path}/infer`, body, headers, timeoutMs), endpoint));
    },
    async serve(name, body, contentType) {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
      const type = Buffer.isBuffer(body) ? (contentType ?? 'application/octet-stream') : 'application/json';
      const answer = refused(await client.serve(`/serve/${name}`, bytes, { 'content-type': type }, timeoutMs), name);
      return JSON.parse(answer.body.toString('utf8'));
    },
  };
}

/** The protocol's request with all tensors in binary behind the JSON. */
export function inferRequest(tensors: Tensors): { head: number; body: Buffer } {
  const inputs = Object.entries(tensors).map(([name, { datatype, shape, bytes }]) => ({
    name,
    datatype,
    shape,
    parameters: { binary_data_size: bytes.length },
  }));
  const head = Buffer.from(JSON.stringify({ inputs, parameters: { binary_data_output: true } }));
  return { head: head.length, body: Buffer.concat([head, ...Object.values(tensors).map(({ bytes }) => bytes)]) };
}

/** Throws `upstream` for an answer whose tensors are not in binary. */
export function inferAnswer({ headers, body }: Pick<RawAnswer, 'headers' | 'body'>): Tensors {
  const length = Number(headers[headerLength] ?? body.length);
  const { outputs } = JSON.parse(body.subarray(0, length).toString('utf8')) as { outputs: WireTensor[] };
  const found: Tensors = {};
  let at = length;
  for (const { name, datatype, shape, parameters } of outputs) {
    const size = parameters?.binary_data_size;
    if (size === undefined) throw new AppError('upstream', `output ${name} came as JSON, wanted binary`);
    found[name] = { datatype, shape, bytes: Buffer.from(body.subarray(at, at + size)) };
    at += size;
  }
  return found;
}

function refused(answer: RawAnswer, endpoint: string): RawAnswer {
  if (answer.status < 300) return answer;
  const text = answer.body.toString('utf8').slice(0, 400);
  const code = answer.status === 404 ? 'not_found' : answer.status < 500 ? 'invalid' : 'upstream';
  throw new AppError(code, `endpoint ${endpoint} answered ${answer.status}: ${wordsOf(text)}`);
}

function wordsOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: string | { message?: string } };
    return (typeof error === 'string' ? error : error?.message) ?? text;
  } catch {
    return text;
  }
}
