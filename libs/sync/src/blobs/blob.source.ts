import type { BlobUrls } from '@perch/contracts';
import { AppError, errorCodeOf } from '@perch/contracts';

/** A file's bytes by their name: SHA-256 and length. */
export interface Blob {
  sha256: string;
  size: number;
}

/** Where short-lived addresses of blobs come from (the control plane). Hashes it does not know are left out of the answer. */
export interface BlobSource {
  urls(hashes: readonly string[]): Promise<BlobUrls['urls']>;
}

const goodForMs = 10 * 60_000;
const mostHashes = 200;
/** Refusals of a whole request that may be meant for one of its hashes. */
const aboutOne = new Set(['forbidden', 'invalid', 'not_found']);

interface Waiter {
  resolve(url: string): void;
  reject(error: unknown): void;
}

/** Addresses of blobs; those asked for in one turn of the event loop are fetched by one request, and kept while they are good. */
export class UrlBook {
  private readonly source: BlobSource;
  private readonly now: () => number;
  private readonly known = new Map<string, { url: string; peers: string[]; at: number }>();
  private readonly distrusted = new Set<string>();
  private readonly asked = new Map<string, Waiter[]>();

  constructor(source: BlobSource, now: () => number = Date.now) {
    this.source = source;
    this.now = now;
  }

  /** The address, or `not_found` when the store has no such blob. `stale`: the address that was refused, to get another one. */
  async urlOf(hash: string, stale?: string): Promise<string> {
    const entry = this.known.get(hash);
    if (entry && entry.url !== stale && this.now() - entry.at < goodForMs) return entry.url;
    return new Promise((resolve, reject) => {
      if (this.asked.size === 0) setImmediate(() => void this.fetchAsked());
      this.asked.set(hash, [...(this.asked.get(hash) ?? []), { resolve, reject }]);
    });
  }

  /** A neighbour to ask before the store; undefined: none (left). */
  peerOf(hash: string): string | undefined {
    return this.known.get(hash)?.peers[0];
  }

  /** It did not answer as it should. */
  dropPeer(hash: string, peer: string): void {
    const entry = this.known.get(hash);
    if (entry) entry.peers = entry.peers.filter((one) => one !== peer);
  }

  /** Bytes under this hash came wrong, from whomever: from now on only the store is asked. */
  distrustPeers(hash: string): void {
    const entry = this.known.get(hash);
    if (entry) entry.peers = [];
    this.distrusted.add(hash);
  }

  private async fetchAsked(): Promise<void> {
    const all = [...this.asked];
    this.asked.clear();
    const groups = Array.from({ length: Math.ceil(all.length / mostHashes) }, (_, n) =>
      all.slice(n * mostHashes, (n + 1) * mostHashes),
    );
    await Promise.all(groups.map((group) => this.fetchGroup(group)));
  }

  private async fetchGroup(group: [string, Waiter[]][]): Promise<void> {
    try {
      const urls = await this.source.urls(group.map(([hash]) => hash));
      for (const [hash, waiters] of group) this.settle(hash, waiters, urls[hash]);
    } catch (error) {
      if (group.length > 1 && aboutOne.has(errorCodeOf(error))) return this.fetchHalves(group);
      for (const [, waiters] of group) for (const { reject } of waiters) reject(error);
    }
  }

  /** One hash that may not be asked for must not keep the others from their addresses. */
  private async fetchHalves(group: [string, Waiter[]][]): Promise<void> {
    const middle = Math.ceil(group.length / 2);
    await Promise.all([this.fetchGroup(group.slice(0, middle)), this.fetchGroup(group.slice(middle))]);
  }

  private settle(hash: string, waiters: Waiter[], found: BlobUrls['urls'][string] | undefined): void {
    if (found === undefined) {
      const error = new AppError('not_found', `blob ${hash} is not in the artifact store; upload its version again`);
      for (const { reject } of waiters) reject(error);
      return;
    }
    const { url, peers = [] } = found;
    this.known.set(hash, { url, peers: this.distrusted.has(hash) ? [] : [...peers], at: this.now() });
    for (const { resolve } of waiters) resolve(url);
  }
}
