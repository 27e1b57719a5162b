import { Admin } from './admin.ts';
import { type ModelServer, startTriton } from './real-triton.ts';
import { Stack } from './stack.ts';

/** The whole product around a real Triton, and a user of it. */
export interface TritonStack {
  triton: ModelServer;
  stack: Stack;
  admin: Admin;
  stop(): Promise<void>;
}

export async function startTritonStack(): Promise<TritonStack> {
  const triton = await startTriton();
  const { http, grpc, repository } = triton;
  try {
    const stack = await Stack.start({ triton: { http, grpc, repository } });
    const stop = async () => {
      await stack.stop();
      await triton.remove();
    };
    return { triton, stack, admin: new Admin(stack), stop };
  } catch (error) {
    await triton.remove();
    throw error;
  }
}
