import { describe } from 'vitest';
import { missingReason } from '../support/real-parts.ts';
import { startTriton } from '../support/real-triton.ts';
import { tritonContract } from './triton.contract.ts';

describe.skipIf(missingReason('triton'))('with a real Triton', () => {
  tritonContract('Triton 2.51', () => startTriton({ id: 'contract' }));
});
