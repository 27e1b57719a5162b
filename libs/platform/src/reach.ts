import { lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { checkReach, type Reach } from './reach.decide.ts';

/** Throws `forbidden` for a URL that names an address out of reach; a name is judged when it is looked up. */
export function checkHost(url: URL, reach: Reach): void {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host)) checkReach(host, [host], reach);
}

/** For `lookup` of node:http(s): names are resolved by the system, and every address that comes back is judged before one is used. */
export const checkedLookup =
  (reach: Reach): LookupFunction =>
  (host, options, done) =>
    lookup(host, { ...options, all: true }, (error, found) => {
      if (error) return done(error, '');
      try {
        checkReach(
          host,
          found.map((entry) => entry.address),
          reach,
        );
      } catch (fault) {
        return done(fault as Error, '');
      }
      const first = found[0];
      if (options.all) return done(null, found);
      done(null, first?.address ?? '', first?.family);
    });
