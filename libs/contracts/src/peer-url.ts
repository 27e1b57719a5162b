import { createHmac, timingSafeEqual } from 'node:crypto';

/** Path of an agent's listener for its neighbours. */
const peerPath = '/peer/blobs/';

const signatureOf = (key: string, sha256: string, expiresAtMs: number): string =>
  createHmac('sha256', key).update(`${sha256}.${expiresAtMs}`).digest('hex');

/**
 * A short-lived address of one blob in an agent's cache. `base`: where that agent listens for neighbours; `key`: the
 * SHA-256 of its own token, which the control plane and that agent alone know.
 */
export function signPeerUrl(base: string, key: string, sha256: string, expiresAtMs: number): string {
  const query = new URLSearchParams({ expires: String(expiresAtMs), signature: signatureOf(key, sha256, expiresAtMs) });
  return `${base.replace(/\/+$/, '')}${peerPath}${sha256}?${query}`;
}

/** The hash that the path and query (as requested) speak for; undefined: not signed by this key, or no longer good. */
export function readPeerUrl(pathAndQuery: string, key: string, nowMs: number): string | undefined {
  const [path = '', query = ''] = pathAndQuery.split('?');
  const sha256 = path.startsWith(peerPath) ? path.slice(peerPath.length) : '';
  if (!/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  const given = new URLSearchParams(query);
  const expiresAtMs = Number(given.get('expires'));
  const signature = Buffer.from(given.get('signature') ?? '');
  const wanted = Buffer.from(signatureOf(key, sha256, expiresAtMs));
  const signed = signature.length === wanted.length && timingSafeEqual(signature, wanted);
  return signed && expiresAtMs > nowMs ? sha256 : undefined;
}
