import { STATUS_CODES } from 'node:http';

/** A whole reply. Header names in lower case; the body's length, the date and the connection's fate are added on sending. */
export interface HttpReply {
  status: number;
  contentType: string;
  /** Further header lines, each ended by CRLF; the caller vouches for their characters. */
  headerLines: string;
  body: string | readonly Uint8Array[];
}

/** Head of a reply that is sent as it comes about. */
export type StreamHead = Omit<HttpReply, 'body'>;

let date = '';
let dateUntil = 0;

/** The Date header, made once a second. */
function dateLine(now: number): string {
  if (now >= dateUntil) {
    date = `date: ${new Date(now).toUTCString()}\r\n`;
    dateUntil = now - (now % 1_000) + 1_000;
  }
  return date;
}

export const headText = (reply: StreamHead, bodyBytes: number, keepAlive: boolean, now: number): string =>
  head(reply, `content-length: ${bodyBytes}\r\n`, keepAlive, now);

/** Without `chunked` the reply ends with the connection. */
export const streamHeadText = (reply: StreamHead, chunked: boolean, keepAlive: boolean, now: number): string =>
  head(reply, chunked ? 'transfer-encoding: chunked\r\n' : '', keepAlive, now);

function head({ status, contentType, headerLines }: StreamHead, framing: string, keepAlive: boolean, now: number) {
  const type = contentType ? `content-type: ${contentType}\r\n` : '';
  const connection = keepAlive ? '' : 'connection: close\r\n';
  const first = status === 200 ? 'HTTP/1.1 200 OK' : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
  return `${first}\r\n${type}${framing}${headerLines}${dateLine(now)}${connection}\r\n`;
}

export const textReply = (status: number, text: string): HttpReply => ({
  status,
  contentType: 'text/plain; charset=utf-8',
  headerLines: '',
  body: `${text}\n`,
});
