import { STATUS_CODES } from 'node:http';

/** A whole reply. Header names in lower case; the body's length, the date and the connection's fate are added on sending. */
export interface HttpReply {
  status: number;
  contentType: string;
  /** Further header lines, each ended by CRLF; the caller vouches for their characters. */
  headerLines: string;
  body: string | readonly Uint8Array[];
}

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

export function headText(reply: HttpReply, bodyBytes: number, keepAlive: boolean, now: number): string {
  const { status, contentType, headerLines } = reply;
  const type = contentType ? `content-type: ${contentType}\r\n` : '';
  const connection = keepAlive ? '' : 'connection: close\r\n';
  const first = status === 200 ? 'HTTP/1.1 200 OK' : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
  return `${first}\r\n${type}content-length: ${bodyBytes}\r\n${headerLines}${dateLine(now)}${connection}\r\n`;
}

export const textReply = (status: number, text: string): HttpReply => ({
  status,
  contentType: 'text/plain; charset=utf-8',
  headerLines: '',
  body: `${text}\n`,
});
