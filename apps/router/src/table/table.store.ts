import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError, type RoutingTable, tableSections } from '@perch/contracts';
import type { EffectiveTable } from './effective-table.decide.ts';
import { Slice } from './slice.ts';

interface FirstLine {
  format: 1;
  head: Omit<RoutingTable, 'endpoints' | 'servers' | 'keys'>;
  held: boolean;
  heldDeployments: string[];
  members: number;
}

type Member = [section: string, key: string, value: unknown];

const flushBytes = 262_144;

/**
 * The table in force, on disk: a line for its head and a line for each member, so that neither writing nor reading holds
 * up requests. Written aside, synced, renamed. Where `remember`
 * is set, members read again unchanged stay the same objects.
 */
export class TableStore {
  private readonly file: string;
  private readonly lines = new Map<string, Member>();
  private readonly remember: boolean;

  /** `remember`: for a process that loads again and again. */
  constructor(file: string, options: { remember: boolean } = { remember: false }) {
    this.file = file;
    this.remember = options.remember;
  }

  async save({ table, held, heldDeployments }: EffectiveTable): Promise<void> {
    const { endpoints, servers, keys, ...head } = table;
    const members = Object.keys(endpoints).length + Object.keys(servers).length + Object.keys(keys).length;
    const first: FirstLine = { format: 1, head, held, heldDeployments: [...heldDeployments], members };
    await mkdir(dirname(this.file), { recursive: true });
    const handle = await open(`${this.file}.new`, 'w', 0o600);
    try {
      const slice = new Slice();
      let text = `${JSON.stringify(first)}\n`;
      for (const section of tableSections)
        for (const [key, value] of Object.entries(table[section])) {
          text += `${JSON.stringify([section, key, value])}\n`;
          if (text.length >= flushBytes) {
            await handle.write(text);
            text = '';
          }
          if (slice.isOver()) await slice.next();
        }
      await handle.write(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(`${this.file}.new`, this.file);
  }

  /** Undefined: there is none. Throws `integrity` for a file that is not whole. */
  async load(): Promise<EffectiveTable | undefined> {
    const bytes = await readFile(this.file).catch(() => undefined);
    if (!bytes) return undefined;
    const slice = new Slice();
    const end = bytes.indexOf(10);
    let first: FirstLine;
    const table = { endpoints: {}, servers: {}, keys: {} } as Record<string, Record<string, unknown>>;
    try {
      first = JSON.parse(bytes.toString('utf8', 0, end)) as FirstLine;
      let count = 0;
      const seen = new Set<string>();
      for (let from = end + 1; from < bytes.length; count += 1) {
        const to = bytes.indexOf(10, from);
        if (to < 0) throw new Error('cut off');
        this.readLine(bytes.toString('utf8', from, to), table, seen);
        from = to + 1;
        if (slice.isOver()) await slice.next();
      }
      if (first.format !== 1 || count !== first.members) throw new Error('cut off');
      for (const key of this.lines.keys()) if (!seen.has(key)) this.lines.delete(key);
    } catch (cause) {
      throw new AppError('integrity', `the routing table on disk (${this.file}) is not whole`, { cause });
    }
    const { head, held, heldDeployments } = first;
    return { table: { ...head, ...table } as RoutingTable, held, heldDeployments: new Set(heldDeployments) };
  }

  private readLine(text: string, table: Record<string, Record<string, unknown>>, seen: Set<string>): void {
    const member = this.lines.get(text) ?? (JSON.parse(text) as Member);
    if (this.remember) {
      seen.add(text);
      this.lines.set(text, member);
    }
    const [section, key, value] = member;
    table[section]![key] = value;
  }
}
