import { Injectable } from '@nestjs/common';
import { signPeerUrl } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { PeerStore } from './peer.store.ts';

const mostPeers = 2;

/** Where an agent may fetch a blob from a neighbour's cache instead of the store. */
@Injectable()
export class PeerService {
  constructor(
    private readonly transactions: Transactions,
    private readonly store: PeerStore,
  ) {}

  /** Short-lived addresses by hash, at most two each, others each time; only of files that the caller's document names. */
  async peersOf(
    caller: string,
    hashes: readonly string[],
    expiresAtMs: number,
    random: () => number = Math.random,
  ): Promise<Map<string, string[]>> {
    const rows = await this.store.holding(this.transactions.manager, caller, hashes);
    const mixed = rows.map((row) => ({ row, at: random() })).sort((a, b) => a.at - b.at);
    const found = new Map<string, string[]>();
    for (const { row } of mixed) {
      const known = found.get(row.hash) ?? [];
      if (known.length < mostPeers) known.push(signPeerUrl(row.address, row.token_hash, row.hash, expiresAtMs));
      found.set(row.hash, known);
    }
    return found;
  }
}
