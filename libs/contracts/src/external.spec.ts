import { describe, expect, it } from 'vitest';
import { modelSource, registerServer, sourceModelName } from './external.schema.ts';

const server = { name: 'gpu-box', url: 'http://10.0.0.7:8000', grpc: '10.0.0.7:8001' };

describe('registering a Triton without an agent', () => {
  it('fills in what is left out', () => {
    expect(registerServer.parse(server)).toEqual({
      ...server,
      pool: 'default',
      mode: 'adopt',
      labels: {},
      headers: {},
    });
  });
  it('takes addresses as people write them', () => {
    const parsed = registerServer.parse({ ...server, url: 'http://[::1]:8000/', grpc: 'grpc://[::1]:8001/' });
    expect([parsed.url, parsed.grpc]).toEqual(['http://[::1]:8000', '[::1]:8001']);
  });
  it.each([
    ['a name with a slash', { name: 'a/b' }],
    ['no name', { name: '' }],
    ['https', { url: 'https://x:8000' }],
    ['a path', { url: 'http://x:8000/v2' }],
    ['a password', { url: 'http://user:word@x:8000' }],
    ['no port', { url: 'http://x' }],
    ['gRPC without a port', { grpc: 'x' }],
    ['another mode', { mode: 'poll' }],
    ['a header with blanks', { headers: { 'a b': 'c' } }],
    ['a header with line ends', { headers: { a: 'b\r\nc' } }],
    ['a field it does not know', { agent: true }],
  ])('refuses %s', (_what, fields) => {
    expect(registerServer.safeParse({ ...server, ...fields }).success).toBe(false);
  });
});

describe('a source', () => {
  it.each([
    ['gpu-box/resnet50', { project: 'external', name: 'resnet50' }],
    ['pool/my model', undefined],
    ['box/_détection v2', undefined],
    ['box/détection', { project: 'external', name: 'd-tection' }],
    ['box/--', { project: 'external', name: 'model' }],
    ['box/', undefined],
    ['/x', undefined],
    [`box/${'a'.repeat(90)}`, { project: 'external', name: 'a'.repeat(64) }],
  ])('%s', (source, name) => {
    expect(modelSource.safeParse(source).success ? sourceModelName(source) : undefined).toEqual(name);
  });
});
