import { z } from 'zod';

type Json = Record<string, unknown>;
type Direction = 'input' | 'output';

const pointer = '#/$defs/';
const referenced = (schema: unknown): string[] =>
  [...JSON.stringify(schema).matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g)].map((match) => match[1]!);

/** What a schema wants, past a step that only looks at the value first (`z.preprocess`). */
const parsed = (schema: z.ZodType): z.ZodType =>
  schema instanceof z.ZodPipe && schema.in instanceof z.ZodTransform ? parsed(schema.out as z.ZodType) : schema;

/**
 * Schemas of the contracts as OpenAPI components: what carries an id becomes a component of that name. Where a request
 * and an answer differ (defaults may be left out of a request), the request's one is called `…Input`.
 */
export class Components {
  private readonly found: Record<Direction, Map<string, Json>> = { input: new Map(), output: new Map() };
  private differing: Set<string> | undefined;

  /** Notes the schema and gives a stand-in, to be resolved once all are known. */
  add(schema: z.ZodType, direction: Direction): () => Json {
    const {
      $schema: _,
      $defs = {},
      ...own
    } = z.toJSONSchema(parsed(schema), { io: direction, unrepresentable: 'any' }) as Json;
    for (const [id, definition] of Object.entries($defs as Record<string, Json>)) this.note(id, definition, direction);
    const id = own['id'] as string | undefined;
    if (id === undefined) return () => this.resolve(own, direction);
    this.note(id, own, direction);
    return () => this.resolve({ $ref: `${pointer}${id}` }, direction);
  }

  all(): Record<string, Json> {
    const named: [string, Json][] = [];
    for (const direction of ['output', 'input'] as const)
      for (const [id, schema] of this.found[direction])
        named.push([this.nameOf(id, direction), this.resolve(schema, direction)]);
    return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  private note(id: string, { id: _id, $id: _uri, ...schema }: Json, direction: Direction): void {
    this.found[direction].set(id, schema);
    this.differing = undefined;
  }

  private resolve(schema: Json, direction: Direction): Json {
    const text = JSON.stringify(schema, (key, value) =>
      key === 'id' && typeof value === 'string' ? undefined : value,
    );
    return JSON.parse(
      text.replace(/"#\/\$defs\/([^"]+)"/g, (_all, id) => `"#/components/schemas/${this.nameOf(id, direction)}"`),
    );
  }

  private nameOf(id: string, direction: Direction): string {
    this.differing ??= this.findDiffering();
    return direction === 'input' && this.differing.has(id) ? `${id}Input` : id;
  }

  /** Ids whose two forms differ, or that refer to one whose forms do. */
  private findDiffering(): Set<string> {
    const { input, output } = this.found;
    const both = [...input.keys()].filter((id) => output.has(id));
    const differing = new Set(both.filter((id) => JSON.stringify(input.get(id)) !== JSON.stringify(output.get(id))));
    for (let before = -1; before !== differing.size; ) {
      before = differing.size;
      for (const id of both) if (referenced(input.get(id)).some((other) => differing.has(other))) differing.add(id);
    }
    return differing;
  }
}
