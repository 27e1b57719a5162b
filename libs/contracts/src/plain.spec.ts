import { describe, expectTypeOf, it } from 'vitest';
import type { z } from 'zod';
import type { decodeOptions, preparationOptions } from './image-processing.schema.ts';
import type { pipelineCondition, pipelineNode, pipelineSpec } from './pipeline.schema.ts';
import type {
  DecodeOptions,
  PipelineCondition,
  PipelineNode,
  PipelineSpecInput,
  PreparationOptions,
  Signature,
  TensorSpec,
} from './plain.ts';
import type { signature, tensorSpec } from './tensor.schema.ts';

/** The type check is what fails here: a field of one side that the other one does not know. */
describe('types that are written out have the fields of their schemas, and no others', () => {
  it('tensors', () => {
    expectTypeOf<keyof TensorSpec>().toEqualTypeOf<keyof z.infer<typeof tensorSpec>>();
    expectTypeOf<keyof Signature>().toEqualTypeOf<keyof z.infer<typeof signature>>();
  });
  it('options of pictures', () => {
    expectTypeOf<keyof DecodeOptions>().toEqualTypeOf<keyof z.input<typeof decodeOptions>>();
    expectTypeOf<keyof PreparationOptions>().toEqualTypeOf<keyof z.input<typeof preparationOptions>>();
  });
  it('pipelines', () => {
    expectTypeOf<keyof PipelineSpecInput>().toEqualTypeOf<keyof z.input<typeof pipelineSpec>>();
    expectTypeOf<keyof PipelineNode>().toEqualTypeOf<keyof z.input<typeof pipelineNode>>();
    expectTypeOf<keyof PipelineCondition>().toEqualTypeOf<keyof z.input<typeof pipelineCondition>>();
  });
});
