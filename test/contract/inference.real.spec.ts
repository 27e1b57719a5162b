import { GrpcTransport, HttpTransport } from '@perch/triton/inference';
import { describe } from 'vitest';
import { missingReason } from '../support/real-parts.ts';
import { startTriton } from '../support/real-triton.ts';
import { inferenceContract } from './inference.contract.ts';

describe.skipIf(missingReason('triton'))('with a real Triton', () => {
  inferenceContract('HTTP to Triton 2.51', startTriton, () => new HttpTransport());
  inferenceContract('gRPC to Triton 2.51', startTriton, () => new GrpcTransport());
});
