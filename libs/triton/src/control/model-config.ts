import { AppError } from '@perch/contracts';
import { messageType } from '../wire/index.ts';
import { type PlainMessage, parseText } from './text-parser.ts';
import { writeText } from './text-writer.ts';

export interface ConfigTensor {
  name?: string;
  /** `TYPE_FP32`, …; see `protocolTypeOf`. */
  data_type?: string | number;
  dims?: number[];
  reshape?: { shape?: number[] };
  optional?: boolean;
  allow_ragged_batch?: boolean;
  label_filename?: string;
  [field: string]: unknown;
}
export interface ConfigInstanceGroup {
  name?: string;
  kind?: string | number;
  count?: number;
  gpus?: number[];
  profile?: string[];
  [field: string]: unknown;
}
export interface ConfigQueuePolicy {
  timeout_action?: string | number;
  default_timeout_microseconds?: number;
  allow_timeout_override?: boolean;
  max_queue_size?: number;
}
export interface ConfigDynamicBatching {
  preferred_batch_size?: number[];
  max_queue_delay_microseconds?: number;
  preserve_ordering?: boolean;
  priority_levels?: number;
  default_queue_policy?: ConfigQueuePolicy;
  priority_queue_policy?: Record<string, ConfigQueuePolicy>;
  [field: string]: unknown;
}

/** Triton's `ModelConfig` with its own field names; what is not spelled out here is there all the same. */
export interface ModelConfig {
  name?: string;
  platform?: string;
  backend?: string;
  runtime?: string;
  version_policy?: { latest?: { num_versions?: number }; all?: object; specific?: { versions?: number[] } };
  max_batch_size?: number;
  input?: ConfigTensor[];
  output?: ConfigTensor[];
  instance_group?: ConfigInstanceGroup[];
  dynamic_batching?: ConfigDynamicBatching;
  sequence_batching?: PlainMessage;
  ensemble_scheduling?: { step?: { model_name?: string; [field: string]: unknown }[]; [field: string]: unknown };
  default_model_filename?: string;
  parameters?: Record<string, { string_value?: string }>;
  metric_tags?: Record<string, string>;
  model_transaction_policy?: { decoupled?: boolean };
  response_cache?: { enable?: boolean };
  [field: string]: unknown;
}

export const modelConfigType = messageType('ModelConfig');

/**
 * Reads the text of a `config.pbtxt` as Triton's own parser does. Throws `invalid` with line and column of the first
 * fault; an unknown field is one. `thing` names the text in the message.
 */
export function parseModelConfig(text: string, thing = 'config.pbtxt'): ModelConfig {
  try {
    return parseText(modelConfigType, text) as ModelConfig;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError('invalid', `${thing}, ${error.message}`, { cause: error, details: error.details });
  }
}

/** Text of a `config.pbtxt`; fields equal to their default are left out. Throws `invalid` on a field Triton does not know. */
export const writeModelConfig = (config: ModelConfig): string => writeText(modelConfigType, config);

/** `TYPE_FP32` → `FP32`, `TYPE_STRING` → `BYTES`. */
export const protocolTypeOf = (configType: string): string =>
  configType === 'TYPE_STRING' ? 'BYTES' : configType.replace(/^TYPE_/, '');
export const configTypeOf = (protocolType: string): string =>
  protocolType === 'BYTES' ? 'TYPE_STRING' : `TYPE_${protocolType}`;
