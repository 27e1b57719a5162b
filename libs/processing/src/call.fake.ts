import { AppError } from '@perch/contracts/plain';
import type { CallContext, FileSource } from './contract.ts';

/** A call that records nothing; for specs. */
export const quietCall: CallContext = {
  requestId: 'r-1',
  endpoint: 'text/minilm',
  version: 1,
  signal: new AbortController().signal,
  remainingMs: () => 60_000,
  headers: {},
  state: {},
  log: () => {},
  infer: async () => {
    throw new AppError('invalid', 'this call has no model');
  },
  serve: async () => {
    throw new AppError('invalid', 'this call reaches no other endpoint');
  },
  streams: false,
  stream: async () => {},
  observe: () => {},
  count: () => {},
  flag: () => {},
};

/** Files of a version that stand in memory. */
export const filesOf = (files: Record<string, string | Buffer>): FileSource => ({
  list: () => Object.keys(files),
  async read(path) {
    const file = files[path];
    if (file === undefined) throw new AppError('not_found', `the version has no file ${path}`);
    return Buffer.from(file as string);
  },
});
