/** Head of one HTTP/1.1 request, read strictly: what two readers could take for different things is refused. */
export interface RequestHead {
  method: string;
  /** As sent, without the query. */
  path: string;
  /** Behind the `?`, or empty. */
  query: string;
  /** Names in lower case; lines of the same name joined by `, `. */
  headers: Readonly<Record<string, string | undefined>>;
  /** Undefined: chunked. */
  contentLength: number | undefined;
  keepAlive: boolean;
  expectsContinue: boolean;
  /** HTTP/1.0: knows no chunks. Absent = HTTP/1.1. */
  http10?: true;
}

/** Status and sentence for a head that is refused; the connection must be closed, since what follows cannot be trusted. */
export class HeadFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const requestLine = /^([A-Z]{1,16}) (\/[\x21-\x7e]{0,8191}) HTTP\/1\.([01])$/;
const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;
const decimal = /^[0-9]{1,15}$/;
const maxFields = 100;

/** A second line of one of these would mean two things at once. */
const single = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'content-type',
  'content-encoding',
  'authorization',
  'expect',
  'inference-header-content-length',
  'x-perch-version',
  'x-request-timeout-ms',
  'x-request-id',
]);

function readFields(lines: readonly string[]): Record<string, string | undefined> {
  if (lines.length - 1 > maxFields) throw new HeadFault(431, `more than ${maxFields} header lines`);
  const headers: Record<string, string | undefined> = Object.create(null);
  for (let i = 1; i < lines.length; i += 1) {
    const line = lines[i]!;
    const colon = line.indexOf(':');
    const rawName = line.slice(0, colon < 0 ? line.length : colon);
    if (colon < 1 || !fieldName.test(rawName)) throw new HeadFault(400, 'a header line has no proper name');
    const name = rawName.toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (!fieldValue.test(value)) throw new HeadFault(400, `header ${name} holds a control character`);
    const before = headers[name];
    if (before !== undefined && single.has(name)) throw new HeadFault(400, `header ${name} is given twice`);
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return headers;
}

function readLength(headers: Readonly<Record<string, string | undefined>>, minor: string): number | undefined {
  const coding = headers['transfer-encoding'];
  const length = headers['content-length'];
  if (coding !== undefined) {
    if (length !== undefined) throw new HeadFault(400, 'both Content-Length and Transfer-Encoding are given');
    if (coding.toLowerCase() !== 'chunked') throw new HeadFault(501, 'the only Transfer-Encoding taken is chunked');
    if (minor === '0') throw new HeadFault(400, 'Transfer-Encoding in HTTP/1.0');
    return undefined;
  }
  if (length === undefined) return 0;
  if (!decimal.test(length)) throw new HeadFault(400, 'Content-Length is not a decimal number');
  return Number(length);
}

/** `text` is the head without its closing blank line, one character a byte. Throws `HeadFault`. */
export function parseRequestHead(text: string): RequestHead {
  const lines = text.split('\r\n');
  const start = requestLine.exec(lines[0]!);
  if (!start) {
    if (/ HTTP\/[2-9](\.[0-9])?$/.test(lines[0]!)) throw new HeadFault(505, 'only HTTP/1.1 is spoken here');
    throw new HeadFault(400, 'the request line is not that of HTTP/1.1');
  }
  const target = start[2]!;
  const minor = start[3]!;
  const headers = readFields(lines);
  if (minor === '1' && headers['host'] === undefined) throw new HeadFault(400, 'header host is missing');
  const mark = target.indexOf('?');
  const connection = headers['connection']?.toLowerCase();
  const expect = headers['expect'];
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') throw new HeadFault(417, `unknown Expect`);
  return {
    method: start[1]!,
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? '' : target.slice(mark + 1),
    headers,
    contentLength: readLength(headers, minor),
    keepAlive: minor === '1' ? !connection?.includes('close') : connection === 'keep-alive',
    expectsContinue: expect !== undefined && minor === '1',
    ...(minor === '0' ? { http10: true as const } : {}),
  };
}
