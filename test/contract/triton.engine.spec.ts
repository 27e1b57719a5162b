import { startEngine } from '../support/real-triton.ts';
import { tritonContract } from './triton.contract.ts';

tritonContract('the embedded engine', () => startEngine({ id: 'engine' }));
