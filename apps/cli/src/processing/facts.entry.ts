/**
 * Reads what a bundle declares, in a process that may read nothing but the SDK, write nothing and start nothing. The
 * bundle comes over the channel to whoever started this, and its facts go back the same way.
 */
import { importBundle } from '@perch/processing/bundle';

const tell = process.send!.bind(process);
const leave = process.exit.bind(process);
const words = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : `${String(error).slice(0, 300)} was thrown`;

const fail = (error: unknown) => tell({ failed: words(error) }, () => leave(1));
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);
process.once('message', async (bundle: Uint8Array) => {
  try {
    const module = (await importBundle(bundle, 'module')) as unknown as Record<string, unknown>;
    const types = Object.fromEntries(Object.entries(module).map(([key, value]) => [key, typeof value]));
    const plain = Object.fromEntries(Object.entries(module).filter(([, value]) => typeof value !== 'function'));
    tell({ types, plain }, () => leave(0));
  } catch (error) {
    fail(error);
  }
});
tell({ ready: true });
