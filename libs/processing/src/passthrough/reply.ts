import { isUtf8 } from 'node:buffer';
import type { Tensor, Tensors } from '@perch/contracts/plain';
import { JsonText } from '../json-text.ts';
import {
  asBytes, asFloat32, asFloat64, asInt8, asInt16, asInt32, asInt64, asUint8, asUint16, asUint32, asUint64, elementCount,
} from '../tensor.ts'; // biome-ignore format: one row reads better
import { asFloats } from '../tensor-of.ts';
import type { GivenBody } from './body.ts';

/** Writes the values from one place up to another as a JSON list. */
type RowWriter = (text: JsonText, from: number, to: number) => void;

const numbers =
  (values: { slice(from: number, to: number): ArrayLike<number | bigint> & { join(by: string): string } }): RowWriter =>
  (text, from, to) =>
    text.raw(`[${values.slice(from, to).join(',')}]`);

const finite =
  (values: Float64Array): RowWriter =>
  (text, from, to) =>
    text.raw(JSON.stringify(Array.from(values.subarray(from, to))));

/** A text where the bytes are one, else `{"b64": "…"}`. */
const texts =
  (values: Uint8Array[]): RowWriter =>
  (text, from, to) => {
    const shown = values.slice(from, to).map((value) => {
      const { buffer, byteOffset, byteLength } = value;
      const view = Buffer.from(buffer, byteOffset, byteLength);
      return isUtf8(view) ? view.toString('utf8') : { b64: view.toString('base64') };
    });
    text.raw(JSON.stringify(shown));
  };

function rowWriter(tensor: Tensor): RowWriter {
  switch (tensor.datatype) {
    case 'FP32': {
      const values = asFloat32(tensor);
      return (text, from, to) => text.float32List(values, from, to);
    }
    case 'FP64':
      return finite(asFloat64(tensor));
    case 'INT8':
      return numbers(asInt8(tensor));
    case 'INT16':
      return numbers(asInt16(tensor));
    case 'INT32':
      return numbers(asInt32(tensor));
    case 'INT64':
      return numbers(asInt64(tensor));
    case 'UINT8':
      return numbers(asUint8(tensor));
    case 'UINT16':
      return numbers(asUint16(tensor));
    case 'UINT32':
      return numbers(asUint32(tensor));
    case 'UINT64':
      return numbers(asUint64(tensor));
    case 'BOOL': {
      const values = asUint8(tensor);
      return (text, from, to) => text.raw(JSON.stringify(Array.from(values.subarray(from, to), Boolean)));
    }
    case 'BYTES':
      return texts(asBytes(tensor));
    case 'FP16':
    case 'BF16': {
      const values = asFloats(tensor);
      return (text, from, to) => text.float32List(values, from, to);
    }
  }
}

/** Lists nested as `shape` says, rows written by `write`; `[]` of shape is one bare value in a list. */
function writeNested(text: JsonText, shape: readonly number[], write: RowWriter): void {
  const rowLength = shape.at(-1) ?? 1;
  let from = 0;
  const level = (depth: number): void => {
    if (depth >= shape.length - 1) {
      write(text, from, from + rowLength);
      from += rowLength;
      return;
    }
    text.raw('[');
    for (let i = 0; i < shape[depth]!; i++) {
      if (i > 0) text.raw(',');
      level(depth + 1);
    }
    text.raw(']');
  };
  level(0);
}

/**
 * `named`: `{"<output>": nested lists}`. `tensors`: the protocol's `{"outputs": [{name, datatype, shape, data}]}` with flat
 * data. Shapes are the model's own, batch dimension included. A NaN or an infinity is written as null.
 */
export function writeReply(outputs: Tensors, form: GivenBody['form']): Buffer {
  const text = new JsonText();
  text.raw(form === 'named' ? '{' : '{"outputs":[');
  let first = true;
  for (const name in outputs) {
    const tensor = outputs[name]!;
    const write = rowWriter(tensor);
    if (!first) text.raw(',');
    first = false;
    if (form === 'named') {
      text.string(name).raw(':');
      writeNested(text, tensor.shape, write);
    } else {
      text.raw(
        `{"name":${JSON.stringify(name)},"datatype":"${tensor.datatype}","shape":[${tensor.shape.join(',')}],"data":`,
      );
      write(text, 0, elementCount(tensor.shape));
      text.raw('}');
    }
  }
  return text.raw(form === 'named' ? '}' : ']}').finish();
}
