import type { Logger, Stoppable } from '@perch/platform';
import { ControlSide } from './control/control-side.ts';
import { CountBook } from './count-book.ts';
import { EvidenceLedger } from './evidence-ledger.ts';
import type { RouterConfig } from './router.config.ts';
import { startServing } from './serve-program.ts';
import type { FileReader } from './serving/processing.store.ts';
import { Serving } from './serving/serving.ts';

/** One process that serves and follows the control plane. */
export async function startAlone(config: RouterConfig, logger: Logger): Promise<Stoppable> {
  const files: FileReader = { read: (sha256, size) => control.files.read(sha256, size) };
  const serving = new Serving(config.transport, files, logger, config.modules);
  const { tables, lease } = serving;
  const counts = new CountBook();
  const evidence = new EvidenceLedger();
  const reported = {
    states: () => [tables.state()],
    counts,
    collect: (limit: number) => counts.hear(0, serving.counts.changed(limit)),
    evidence,
    gather: async (last: boolean) => {
      const now = performance.now();
      evidence.hear(0, serving.evidence.changed(now, last), now);
    },
    accepted: (atMs: number) => lease.accepted(atMs),
  };
  const control = new ControlSide(config, (effective) => tables.apply(effective), reported, logger);
  tables.onSwap(() => control.reportSoon());
  const collect = () => [serving.snapshot()];
  await control.start();
  const { app, address } = await startServing({ config, logger, serving, control, collect });
  logger.info('listening', { address });
  return app;
}
