import type { Invocation } from '../invocation.ts';
import { factsText } from '../output.ts';
import type { Running } from '../up/stack.service.ts';
import { readUpOptions, type UpOptions } from '../up/up.config.ts';
import type { Run } from '../verb.ts';

/** Starts everything, says where it listens, and stays until a signal (or the end of its standard input). */
export const run: Run = async (invocation, _args, flags) => {
  const options = readUpOptions(flags, invocation.settings);
  const stop = untilTold(flags['stopWithStdin'] === true);
  const { NestFactory } = await import('@nestjs/core');
  const { UpModule } = await import('../up/up.module.ts');
  const { StackService } = await import('../up/stack.service.ts');
  const words = { say: (sentence: string) => invocation.note(`perch up: ${sentence}`) };
  const app = await NestFactory.createApplicationContext(UpModule.forRoot(options, words), {
    logger: false,
    abortOnError: false,
  });
  const stack = app.get(StackService);
  void stop.then(() => stack.cancel());
  const begun = Date.now();
  const starting = stack.start();
  try {
    const running = await Promise.race([starting, stop]);
    if (running) {
      await saveContext(invocation, options, running);
      const asJson = flags['json'] === true || invocation.output === 'json';
      process.stdout.write(`${asJson ? jsonLine(options, running) : welcome(options, running, Date.now() - begun)}\n`);
      await stop;
    }
    invocation.hint('stopping …');
  } finally {
    await Promise.allSettled([starting]); // what is being started is known before it is stopped
    await app.close();
  }
  return undefined;
};

/** Resolves at the first signal; a second one ends at once (the watchdog ends the children). */
function untilTold(withStdin: boolean): Promise<undefined> {
  return new Promise((done) => {
    let signals = 0;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => {
        signals += 1;
        if (signals > 1) process.exit(1);
        done(undefined);
      });
    if (!withStdin) return;
    const told = () => done(undefined);
    process.stdin.on('end', told).on('close', told).on('error', told).resume();
  });
}

async function saveContext(invocation: Invocation, options: UpOptions, running: Running): Promise<void> {
  const context = { url: running.controlPlane, routerUrl: running.router, apiKey: running.adminKey };
  await invocation.contexts.save(options.contextName, context);
}

function jsonLine(options: UpOptions, running: Running): string {
  const { adminKey: _adminKey, ...shown } = running; // the key is in the context file, which only its owner may read
  return JSON.stringify({ up: true, context: options.contextName, configDir: options.configDir, ...shown });
}

function welcome(options: UpOptions, running: Running, ms: number): string {
  const { engine, servers } = running;
  const kind = engine.kind === 'triton' ? `Triton ${engine.version}` : 'embedded engine';
  const facts = factsText([
    ['  control plane', running.controlPlane],
    ['  router', running.router],
    ...servers.map(({ name, http, grpc, agent }): [string, string] => [
      `  server ${name}`,
      `${kind}: http ${http}, grpc ${grpc}; agent ${agent}`,
    ]),
    ['  database', running.database],
    ['  data', running.dataDir],
    ['  logs', running.logs],
    ['  context', `${options.contextName} (saved in ${options.configDir}; it holds the admin key)`],
  ]);
  return `Perch is up after ${(ms / 1_000).toFixed(1)} s.\n\n${facts}\n\nNext, in another terminal:\n  perch model import nlp/minilm ./all-MiniLM-L6-v2 --publish\nStop with Ctrl-C.`;
}
