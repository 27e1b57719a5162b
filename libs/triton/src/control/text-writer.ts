import { AppError } from '@perch/contracts';
import protobuf from 'protobufjs';
import type { PlainMessage } from './text-parser.ts';

const escaped: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

export const quoted = (text: string): string =>
  `"${text.replace(/[\\"\x00-\x1f\x7f]/g, (char) => escaped[char] ?? `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)}"`;

function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return Object.is(value, -0) ? '-0.0' : String(value);
}

/** Text of one value that is no message. */
function scalarText(field: protobuf.Field, value: unknown): string {
  if (field.resolvedType instanceof protobuf.Enum) return String(value);
  if (field.type === 'string') return quoted(String(value));
  if (field.type === 'float' || field.type === 'double') return floatText(value as number);
  return String(value);
}

const isDefault = (field: protobuf.Field, value: unknown): boolean => {
  if (field.resolvedType instanceof protobuf.Enum) return value === 0 || value === field.resolvedType.valuesById[0];
  return value === '' || value === false || value === 0n || (value === 0 && !Object.is(value, -0));
};

function fieldLines(field: protobuf.Field, value: unknown, pad: string): string[] {
  if (value === undefined || value === null) return [];
  if (field.map) {
    const { keyType } = field as unknown as protobuf.MapField;
    const keyText = (key: string) => (keyType === 'string' ? quoted(key) : key);
    return Object.entries(value as PlainMessage).flatMap(([key, member]) => {
      const lines =
        field.resolvedType instanceof protobuf.Type
          ? [`${pad}  value {`, ...messageLines(field.resolvedType, member as PlainMessage, `${pad}    `), `${pad}  }`]
          : [`${pad}  value: ${scalarText(field, member)}`];
      return [`${pad}${field.name} {`, `${pad}  key: ${keyText(key)}`, ...lines, `${pad}}`];
    });
  }
  const { resolvedType } = field;
  if (resolvedType instanceof protobuf.Type) {
    const messages = (field.repeated ? value : [value]) as PlainMessage[];
    return messages.flatMap((message) => {
      const lines = messageLines(resolvedType, message, `${pad}  `);
      return lines.length === 0 ? [`${pad}${field.name} {}`] : [`${pad}${field.name} {`, ...lines, `${pad}}`];
    });
  }
  if (field.repeated) {
    const items = (value as unknown[]).map((item) => scalarText(field, item));
    return items.length === 0 ? [] : [`${pad}${field.name}: [ ${items.join(', ')} ]`];
  }
  // A member of a oneof says which was chosen, so it is written even where it equals its default.
  if (isDefault(field, value) && !field.partOf) return [];
  return [`${pad}${field.name}: ${scalarText(field, value)}`];
}

function messageLines(type: protobuf.Type, message: PlainMessage, pad: string): string[] {
  const unknown = Object.keys(message).find((key) => !Object.hasOwn(type.fields, key));
  if (unknown !== undefined) throw new AppError('invalid', `${type.name} has no field named "${unknown}"`);
  return type.fieldsArray.flatMap((field) => fieldLines(field.resolve(), message[field.name], pad));
}

/** Protobuf text of plain values, one field a line; fields equal to their default are left out. */
export const writeText = (type: protobuf.Type, message: PlainMessage): string =>
  messageLines(type, message, '')
    .map((line) => `${line}\n`)
    .join('');
