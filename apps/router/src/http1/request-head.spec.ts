import { describe, expect, it } from 'vitest';
import { HeadFault, parseRequestHead } from './request-head.ts';

const fault = (text: string): number => {
  try {
    parseRequestHead(text);
  } catch (error) {
    if (error instanceof HeadFault) return error.status;
  }
  return 0;
};

describe('parseRequestHead', () => {
  it('reads what it needs', () => {
    const head = parseRequestHead(
      'POST /serve/a?b=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\nAccept: a\r\naccept:\tb \r\nExpect: 100-Continue',
    );
    expect(head).toMatchObject({
      method: 'POST',
      path: '/serve/a',
      query: 'b=1',
      contentLength: 12,
      keepAlive: true,
      expectsContinue: true,
    });
    expect(head.headers).toMatchObject({ host: 'x', accept: 'a, b' });
  });

  it.each([
    ['HTTP/1.1', undefined, true],
    ['HTTP/1.1', 'close', false],
    ['HTTP/1.1', 'keep-alive, Close', false],
    ['HTTP/1.0', undefined, false],
    ['HTTP/1.0', 'Keep-Alive', true],
  ])('keeps the connection of %s with "%s": %s', (version, connection, kept) => {
    const line = connection ? `\r\nConnection: ${connection}` : '';
    expect(parseRequestHead(`GET / ${version}\r\nHost: x${line}`).keepAlive).toBe(kept);
  });

  it('takes a header named like a member of Object for a header', () => {
    const { headers } = parseRequestHead('GET / HTTP/1.1\r\nHost: x\r\n__proto__: a\r\nconstructor: b');
    expect(['__proto__', 'constructor', 'tostring'].map((name) => headers[name])).toEqual(['a', 'b', undefined]);
  });

  /** Each of these has been read in two ways by two servers somewhere, which is how one request smuggles another. */
  it.each([
    ['both framings', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5', 400],
    ['a list of lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5', 400],
    ['a signed length', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5', 400],
    ['a hexadecimal length', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5', 400],
    ['an empty length', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length:', 400],
    ['a coding that is not chunked', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked', 501],
    [
      'a disguised coding',
      'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity',
      400,
    ],
    ['chunks in HTTP/1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked', 400],
    ['a blank before the colon', 'GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 5', 400],
    ['a folded line', 'GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c', 400],
    ['a bare line feed', 'GET / HTTP/1.1\r\nHost: x\nContent-Length: 5', 400],
    ['a bare carriage return', 'GET / HTTP/1.1\r\nHost: x\rA: b', 400],
    ['a NUL', 'GET / HTTP/1.1\r\nHost: x\r\nA: b\0c', 400],
    ['no colon', 'GET / HTTP/1.1\r\nHost: x\r\nnothing', 400],
    ['no name', 'GET / HTTP/1.1\r\nHost: x\r\n: b', 400],
    ['no host', 'GET / HTTP/1.1\r\nA: b', 400],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: x\r\nHost: y', 400],
    ['an absolute target', 'GET http://a/ HTTP/1.1\r\nHost: x', 400],
    ['a blank in the target', 'GET /a b HTTP/1.1\r\nHost: x', 400],
    ['a small method', 'get / HTTP/1.1\r\nHost: x', 400],
    ['HTTP/2', 'PRI * HTTP/2.0', 505],
    ['HTTP/0.9', 'GET /', 400],
    ['a leading blank line', '\r\nGET / HTTP/1.1\r\nHost: x', 400],
    ['too many lines', `GET / HTTP/1.1\r\nHost: x${'\r\nA: b'.repeat(101)}`, 431],
    ['another expectation', 'GET / HTTP/1.1\r\nHost: x\r\nExpect: tea', 417],
  ])('refuses %s', (_what, text, status) => {
    expect(fault(text)).toBe(status);
  });
});
