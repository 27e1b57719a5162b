import { randomBytes } from 'node:crypto';

const pattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The trace that a request belongs to (W3C Trace Context): the client's own, else one that begins here. */
export const traceOf = (header: string | undefined): string =>
  header !== undefined && pattern.test(header)
    ? header
    : `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;

/** The same trace as one call within the request passes it on: with a span of its own. */
export const childOf = (trace: string): string =>
  `${trace.slice(0, 36)}${randomBytes(8).toString('hex')}${trace.slice(52)}`;
