/** Head of an HTTP/1.1 reply, reduced to what a client of Triton needs. */
export interface ReplyHead {
  status: number;
  /** Undefined: the body ends with the connection. */
  contentLength: number | undefined;
  chunked: boolean;
  keepAlive: boolean;
  contentType: string;
  /** Value of `Inference-Header-Content-Length`. */
  headerLength: number | undefined;
}

const statusLine = /^HTTP\/1\.([01]) ([1-5][0-9]{2})(?: |$)/;
const decimal = /^[0-9]{1,15}$/;

/** Index behind the blank line that ends a head, or -1. Scans from `from`, which may lie 3 bytes before unread ones. */
export function endOfHead(bytes: Uint8Array, from: number, to: number): number {
  for (let i = from; i + 3 < to; i += 1)
    if (bytes[i] === 13 && bytes[i + 1] === 10 && bytes[i + 2] === 13 && bytes[i + 3] === 10) return i + 4;
  return -1;
}

function readCount(name: string, value: string, before: number | undefined): number {
  const count = decimal.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(count) || (before !== undefined && before !== count)) throw new Error(`bad ${name} in the reply`);
  return count;
}

/** Throws an `Error` when the text is no HTTP/1.x head or its framing is ambiguous. */
export function parseReplyHead(text: string): ReplyHead {
  const lines = text.split('\r\n');
  const start = statusLine.exec(lines[0]!);
  if (!start) throw new Error('the reply is not HTTP/1.1');
  const status = Number(start[2]);
  const head: ReplyHead = {
    status,
    contentLength: undefined,
    chunked: false,
    keepAlive: start[1] === '1',
    contentType: '',
    headerLength: undefined,
  };
  for (let i = 1; i < lines.length; i += 1) {
    const line = lines[i]!;
    const colon = line.indexOf(':');
    if (colon < 1) {
      if (line === '') continue;
      throw new Error('bad header line in the reply');
    }
    const value = line.slice(colon + 1).trim();
    switch (line.slice(0, colon).toLowerCase()) {
      case 'content-length':
        head.contentLength = readCount('Content-Length', value, head.contentLength);
        break;
      case 'transfer-encoding':
        if (value.toLowerCase() !== 'chunked') throw new Error('unknown Transfer-Encoding in the reply');
        head.chunked = true;
        break;
      case 'connection':
        head.keepAlive = value.toLowerCase() === 'keep-alive' || (head.keepAlive && value.toLowerCase() !== 'close');
        break;
      case 'content-type':
        head.contentType = value;
        break;
      case 'inference-header-content-length':
        head.headerLength = readCount('Inference-Header-Content-Length', value, head.headerLength);
        break;
    }
  }
  if (head.chunked && head.contentLength !== undefined) throw new Error('both Content-Length and chunks in the reply');
  if (status === 204 || status === 304) head.contentLength = 0;
  return head;
}
