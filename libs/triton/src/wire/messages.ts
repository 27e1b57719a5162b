import protobuf from 'protobufjs';
import { configProto } from './config.schema.ts';
import { healthProto } from './health.schema.ts';
import { serviceProto } from './service.schema.ts';

const keepSnakeCase = { keepCase: true };

function loadRoot(): protobuf.Root {
  const root = new protobuf.Root();
  protobuf.parse(`syntax = "proto3"; package inference; ${configProto} ${serviceProto}`, root, keepSnakeCase);
  protobuf.parse(healthProto, root, keepSnakeCase);
  root.resolveAll();
  return root;
}

/** Every message of Triton's protocol; field names are the snake_case ones of the protocol. */
export const protocol: protobuf.Root = loadRoot();

/** A message type by its name within the package `inference`, e.g. `ModelConfig` or `ModelInput.Format`'s owner `ModelInput`. */
export const messageType = (name: string): protobuf.Type => protocol.lookupType(`inference.${name}`);

/** Plain form of a message: 64-bit integers as numbers, enums by name, bytes as they are, maps as objects, unset fields left out. */
export const plainOf = (type: protobuf.Type, message: protobuf.Message): Record<string, unknown> =>
  type.toObject(message, { longs: Number, enums: String, oneofs: false });
