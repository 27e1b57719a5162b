interface Schema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  $ref?: string;
  $defs?: Record<string, Schema>;
}

/** A JSON schema as TypeScript would write the type, on one line. */
export function typeText(schema: Schema, defs: Record<string, Schema> = schema.$defs ?? {}, depth = 0): string {
  const inner = (one: Schema) => typeText(one, defs, depth + 1);
  if (depth > 8) return '…';
  if (schema.$ref) return inner(defs[schema.$ref.split('/').at(-1) as string] ?? {});
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(' | ');
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map(inner))].join(' | ');
  if (schema.allOf) return schema.allOf.map(inner).join(' & ');
  if (Array.isArray(schema.type)) return schema.type.join(' | ');
  if (schema.type === 'array') return listText(schema.items ? inner(schema.items) : 'unknown');
  if (schema.type === 'object') return objectText(schema, inner);
  return schema.type === 'integer' ? 'number' : (schema.type ?? 'unknown');
}

const listText = (item: string): string => (/[ |&]/.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`);

function objectText(
  { properties, required = [], additionalProperties }: Schema,
  inner: (one: Schema) => string,
): string {
  const members = Object.entries(properties ?? {}).map(
    ([name, value]) => `${name}${required.includes(name) ? '' : '?'}: ${inner(value)}`,
  );
  if (members.length === 0)
    return typeof additionalProperties === 'object' ? `{ [name: string]: ${inner(additionalProperties)} }` : '{}';
  return `{ ${members.join('; ')} }`;
}
