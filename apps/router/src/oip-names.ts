import type { ForwardReply } from '@perch/triton/inference';

export interface ShownNames {
  /** The model server's own name and version of the model. */
  tritonModel: string;
  tritonVersion: string;
  endpoint: string;
  version: number;
}

export interface RenamedBody {
  body: Buffer[];
  /** Bytes of JSON in front of binary tensors; undefined when all is JSON. */
  headerLength: number | undefined;
}

/** Names stand at the head of a reply, behind an id of the client's choice at most. */
const searchBytes = 65_536;

/** The `"` that opens a member cannot be part of a text: there it would be escaped. So the first match is the member. */
function replaceOnce(json: Buffer, wanted: string, by: string): Buffer[] | undefined {
  const at = json.subarray(0, searchBytes).indexOf(wanted, 0, 'utf8');
  if (at < 0) return undefined;
  return [json.subarray(0, at), Buffer.from(by), json.subarray(at + Buffer.byteLength(wanted))];
}

/**
 * An infer reply under the names the client knows: two members of its JSON are replaced in place, tensors are not looked
 * at, nothing is copied. Falls back to parsing where the JSON is not written the way model servers do.
 */
export function renameInferReply({ body, headerLength }: ForwardReply, names: ShownNames): RenamedBody {
  const json = headerLength === undefined ? body : body.subarray(0, headerLength);
  const tensors = headerLength === undefined ? [] : [body.subarray(headerLength)];
  const { tritonModel, tritonVersion, endpoint, version } = names;
  const renamed =
    replaceOnce(
      json,
      `"model_name":"${tritonModel}","model_version":"${tritonVersion}"`,
      `"model_name":${JSON.stringify(endpoint)},"model_version":"${version}"`,
    ) ?? parseAndRename(json, names);
  let length = 0;
  for (const part of renamed) length += part.length;
  return { body: [...renamed, ...tensors], headerLength: headerLength === undefined ? undefined : length };
}

function parseAndRename(json: Buffer, { endpoint, version }: ShownNames): Buffer[] {
  const value = JSON.parse(json.toString()) as Record<string, unknown>;
  return [Buffer.from(JSON.stringify({ ...value, model_name: endpoint, model_version: String(version) }))];
}

/** Configuration and statistics: small and rare, so they are parsed. */
export function renameDocument(body: Buffer, { tritonModel, endpoint, version }: ShownNames): Buffer {
  const text = body.toString().replaceAll(JSON.stringify(tritonModel), JSON.stringify(endpoint));
  const value = JSON.parse(text) as { model_stats?: { version?: string }[] };
  for (const stats of value.model_stats ?? []) stats.version = String(version);
  return Buffer.from(JSON.stringify(value));
}
