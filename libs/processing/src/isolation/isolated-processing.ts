import type { ModuleFacts, Tensors } from '@perch/contracts';
import type { CallContext } from '../contract.ts';
import type { LoadedProcessing } from '../loaded-module.ts';
import { kept } from './cell.ts';
import type { CellPool } from './cell-pool.ts';
import { Job, type Visit } from './job.ts';

/** A module that runs in cells, as the router sees it. What is carried is a ticket: state and carry stay in the cell. */
export function isolatedProcessing(
  pool: CellPool,
  binding: number,
  { hooks, task, inputs, outputs }: ModuleFacts,
  unload: () => Promise<void>,
): LoadedProcessing {
  const after = async (job: Job): Promise<unknown> => pool.run(job);
  const ask = (hook: 'process' | 'postprocess', given: unknown, carry: unknown, ctx: CallContext) =>
    after(
      new Job({
        hook,
        visit: carry as Visit,
        ctx,
        value: (out) => (given === kept ? { as: 'kept' } : out.value(given)),
      }),
    );
  return {
    declares: { task, inputs, outputs },
    async preprocess(body, contentType, ctx) {
      const visit: Visit = { binding, body, contentType, cell: undefined, id: 0 };
      const value = await after(
        new Job({ hook: 'preprocess', visit, ctx, value: (out) => ({ as: 'bytes', place: out.place(body) }) }),
      );
      return { inputs: value as Tensors, carry: visit };
    },
    ...(hooks.includes('process') ? { process: (given, carry, ctx) => ask('process', given, carry, ctx) } : {}),
    postprocess: (given, carry, ctx) => (hooks.includes('postprocess') ? ask('postprocess', given, carry, ctx) : given),
    unload,
  };
}
