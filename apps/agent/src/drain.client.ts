import { readFileSync } from 'node:fs';
import { innerMessage } from '@perch/contracts';
import { Agent, request } from 'undici';
import type { AgentConfig } from './agent.config.ts';
import type { DrainOutcome } from './drain.service.ts';

/** Beyond the agent's own limit: then it hangs. */
const graceMs = 5_000;
const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };

/** `agent drain`: asks the agent of this machine, by its own settings, and waits. Resolves to words for the console and an exit code. */
export async function askForDrain(config: AgentConfig): Promise<{ words: string; exitCode: number }> {
  const { PERCH_LISTEN: at, PERCH_TLS_CERT: certFile, PERCH_DRAIN_TIMEOUT_MS: limitMs } = config;
  const address = `${certFile ? 'https' : 'http'}://${everywhere[at.host] ?? at.host}:${at.port}`;
  // To ourselves: the listener must hold our certificate, whatever name is in it.
  const connect = certFile ? { ca: readFileSync(certFile), checkServerIdentity: () => undefined } : {};
  const dispatcher = new Agent({ connect, headersTimeout: limitMs + graceMs });
  try {
    const signal = AbortSignal.timeout(limitMs + graceMs);
    const { statusCode, body } = await request(`${address}/drain`, { method: 'POST', dispatcher, signal });
    const text = await body.text();
    if (statusCode !== 200) return { words: `drain: the agent at ${address} answered ${statusCode}`, exitCode: 1 };
    const { drained, models } = JSON.parse(text) as DrainOutcome;
    return { words: drained ? 'drained' : notDrained(models, limitMs), exitCode: 0 };
  } catch (error) {
    return { words: `drain: no answer of the agent at ${address}: ${innerMessage(error)}`, exitCode: 1 };
  } finally {
    await dispatcher.destroy();
  }
}

/** The pod ends all the same: exit 0, so that its end is not delayed by a hook that is tried again. */
const notDrained = (models: readonly string[], limitMs: number) =>
  `not drained after ${limitMs} ms (PERCH_DRAIN_TIMEOUT_MS); served nowhere else yet: ${models.join(', ') || 'unknown'}`;
