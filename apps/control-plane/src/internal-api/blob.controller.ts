import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { AppError, type BlobUrls, blobUrlsRequest, errorCodeOf } from '@perch/contracts';
import { PeerService, RouterService, ServerService } from '@perch/fleet';
import { RegistryService } from '@perch/registry';
import type { z } from 'zod';
import { Bearer } from './caller.ts';

const lifeMs = 15 * 60_000;

@Controller('internal/v1/blobs')
export class BlobController {
  constructor(
    private readonly servers: ServerService,
    private readonly routers: RouterService,
    private readonly registry: RegistryService,
    private readonly peers: PeerService,
  ) {}

  /** Signed URLs for 15 min of what the caller's own document names; `forbidden` for anything else. */
  @Post('urls')
  @HttpCode(200)
  async urls(
    @Bearer() token: string,
    @Body({ schema: blobUrlsRequest }) { hashes, peers = false }: z.output<typeof blobUrlsRequest>,
  ): Promise<BlobUrls> {
    const { server, named } = await this.namedHashes(token, hashes);
    const foreign = hashes.filter((hash) => !named.has(hash));
    if (foreign.length > 0)
      throw new AppError('forbidden', `${foreign.length} of ${hashes.length} hashes are not in the caller's document`, {
        details: { hashes: foreign.slice(0, 10) },
      });
    const found = await this.registry.blobUrls([...named], lifeMs);
    const near = peers && server !== null ? await this.peers.peersOf(server, hashes, Date.now() + lifeMs) : undefined;
    return {
      urls: Object.fromEntries(
        found.map(({ sha256, sizeBytes, url }) => {
          const addresses = near?.get(sha256);
          return [sha256, { url, size: sizeBytes, ...(addresses ? { peers: addresses } : {}) }];
        }),
      ),
    };
  }

  private async namedHashes(
    token: string,
    hashes: readonly string[],
  ): Promise<{ server: string | null; named: Set<string> }> {
    const server = await this.servers.authenticate(token).catch(unknownIsNull);
    if (server !== null) return { server, named: await this.servers.desiredHashes(server, hashes) };
    await this.routers.authenticate(token);
    return { server: null, named: await this.routers.tableHashes(hashes) };
  }
}

function unknownIsNull(error: unknown): null {
  if (errorCodeOf(error) === 'unauthenticated') return null;
  throw error;
}
