import {
  AppError, type DocumentPatch, documentHead, documentSchema, endpointName, parseWith, patchSections, type RoutingTable, route, tableKey,
  tableSections, tableServer,
} from '@perch/contracts'; // biome-ignore format: one list
import { z } from 'zod';
import type { Slice } from './slice.ts';
import { SlicedJson } from './sliced-json.ts';

const head = z.object({ ...documentHead, publishedAt: z.string().default(''), routers: z.number().int().default(0) });
const envelope = z.union([
  z.object({ kind: z.literal('whole'), document: z.record(z.string(), z.unknown()) }),
  z.object({ kind: z.literal('patch'), base: z.number().int(), patch: z.record(z.string(), z.unknown()) }),
]);
const memberSchemas = { endpoints: route, servers: tableServer, keys: tableKey } as const;

/** The patch builds on a table that this router does not hold: the whole one must be asked for. */
export class WrongBase extends Error {}

const sectionNames: ReadonlySet<string> = new Set(tableSections);

/** Checks each member as it is parsed, so that a big table is never held twice. */
function checkMember(path: readonly string[], value: unknown): unknown {
  const [, section, key] = path;
  if (path.length !== 3 || !sectionNames.has(section!)) return value;
  if (section === 'endpoints') parseWith(endpointName, key, 'routing table: endpoint name');
  if (value === null && path[0] === 'patch') return null;
  return parseWith(memberSchemas[section as keyof typeof memberSchemas], value, `routing table: ${section}.${key}`);
}

const sectionsOf = (value: Record<string, unknown>): DocumentPatch =>
  Object.fromEntries(tableSections.map((section) => [section, (value[section] ?? {}) as Record<string, unknown>]));

/** What one member cannot tell: shares add to 1, every server named is listed. Throws `invalid`. */
async function checkWhole(table: RoutingTable, slice: Slice): Promise<void> {
  for (const name in table.endpoints) {
    const { arms, targets } = table.endpoints[name]!;
    const sum = arms.reduce((total, arm) => total + arm.share, 0);
    if (arms.length > 0 && Math.abs(sum - 1) > 1e-6)
      throw new AppError('invalid', `routing table: the shares of ${name} add to ${sum}, wanted 1`);
    for (const target of targets)
      for (const server of target.servers)
        if (!(server in table.servers))
          throw new AppError('invalid', `routing table: ${name} names server ${server}, which is not listed`);
    if (slice.isOver()) await slice.next();
  }
}

/**
 * Reads an answer of the long poll in slices: parsed, validated, and patched onto `current` where it is a patch (members
 * that did not change stay the same objects). Throws `upstream` or `invalid` naming what is wrong, `WrongBase` for a patch on another table.
 */
export async function readTableAnswer(
  bytes: Buffer,
  current: RoutingTable | undefined,
  slice: Slice,
): Promise<RoutingTable> {
  const answer = await new SlicedJson(bytes, slice, checkMember).parse(3);
  const read = parseWith(envelope, answer, 'routing table');
  const source = read.kind === 'whole' ? read.document : (answer as Record<string, unknown>);
  const heading = parseWith(head, source, 'routing table');
  if (heading.schema > documentSchema)
    throw new AppError(
      'invalid',
      `routing table: schema ${heading.schema} is newer than ${documentSchema}, update this router first`,
    );
  let table: RoutingTable;
  if (read.kind === 'whole') {
    table = { ...heading, ...sectionsOf(read.document) } as RoutingTable;
  } else {
    if (!current || current.revision !== read.base || current.lineage !== heading.lineage) throw new WrongBase();
    const patch = sectionsOf(read.patch);
    const { endpoints, servers, keys } = current;
    const before = { publishedAt: current.publishedAt, routers: current.routers };
    const kept = source as { publishedAt?: unknown; routers?: unknown };
    table = {
      ...heading,
      ...(kept.publishedAt === undefined ? { publishedAt: before.publishedAt } : {}),
      ...(kept.routers === undefined ? { routers: before.routers } : {}),
      ...patchSections({ endpoints, servers, keys }, patch),
    } as RoutingTable;
  }
  await checkWhole(table, slice);
  return table;
}
