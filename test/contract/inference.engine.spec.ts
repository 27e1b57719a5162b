import { GrpcTransport, HttpTransport } from '@perch/triton/inference';
import { startEngine } from '../support/real-triton.ts';
import { inferenceContract } from './inference.contract.ts';

inferenceContract('HTTP to the embedded engine', startEngine, () => new HttpTransport());
inferenceContract('gRPC to the embedded engine', startEngine, () => new GrpcTransport());
