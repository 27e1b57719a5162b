import { describe, expect, it } from 'vitest';
import { readPeerUrl, signPeerUrl } from './peer-url.ts';

const hash = 'a'.repeat(64);
const pathOf = (url: string) => url.slice('http://10.0.0.1:8096'.length);

describe('addresses in a neighbour’s cache', () => {
  const path = pathOf(signPeerUrl('http://10.0.0.1:8096/', 'key', hash, 1_000));

  it('speak for one blob, for a while, to one neighbour', () => {
    expect(readPeerUrl(path, 'key', 999)).toBe(hash);
    expect(readPeerUrl(path, 'key', 1_000)).toBeUndefined();
    expect(readPeerUrl(path, 'other key', 999)).toBeUndefined();
  });

  it.each([
    ['another blob', path.replace(hash, 'b'.repeat(64))],
    ['a later end', path.replace('expires=1000', 'expires=9000')],
    ['no signature', path.replace(/&signature=.*/, '')],
    ['a shorter signature', path.slice(0, -1)],
    ['another path', path.replace('/peer/', '/../')],
    ['no hash', '/peer/blobs/../../etc/passwd?expires=9'],
    ['nothing', ''],
  ])('with %s are refused', (_, changed) => {
    expect(readPeerUrl(changed, 'key', 1)).toBeUndefined();
  });
});
