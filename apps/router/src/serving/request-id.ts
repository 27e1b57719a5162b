import { randomBytes } from 'node:crypto';

const given = /^[A-Za-z0-9._:-]{1,128}$/;
const prefix = randomBytes(6).toString('hex');
let count = 0;

/** The client's own id where it is printable and short, else one unique to this process and request. */
export function requestIdOf(header: string | undefined): string {
  if (header !== undefined && given.test(header)) return header;
  count += 1;
  return `${prefix}-${count.toString(36)}`;
}
