import { setTimeout as pause } from 'node:timers/promises';
import { AppError, type Page, type Server } from '@perch/contracts';
import { AdminClient } from '../admin.client.ts';

const timeoutMs = 90_000;

/** Resolves when the address answers 200; {} because such a program says nothing about itself. */
export async function untilAnswers(url: string, signal: AbortSignal): Promise<Record<string, string>> {
  const client = new AdminClient({ url });
  try {
    while (!signal.aborted) {
      const answer = await client.probe(url, 2_000).catch(() => undefined);
      if (answer?.status === 200) return {};
      await pause(50);
    }
    throw new AppError('timeout', `${url} did not answer`);
  } finally {
    await client.close();
  }
}

/** Resolves when control plane and router are ready and the agent's server is live. Throws `timeout` naming what is not. */
export async function untilServing(
  url: string,
  routerUrl: string,
  apiKey: string,
  cancelled: AbortSignal,
): Promise<void> {
  const client = new AdminClient({ url, routerUrl, apiKey });
  const ready = async (base: string, name: string) => {
    const answer = await client.probe(`${base}/health/ready`, 2_000).catch(() => undefined);
    if (answer?.status === 200) return undefined;
    return `${name} is not ready: ${answer ? answer.body.toString('utf8').slice(0, 300) : 'no answer'}`;
  };
  const live = async () => {
    const page = await client.call<Page<Server>>('/servers').catch((error: Error) => error);
    if (page instanceof Error) return `servers: ${page.message}`;
    const server = page.items.find((one) => one.live && one.observed?.triton.ready);
    return server ? undefined : 'no server is live yet';
  };
  try {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const fault = (await ready(url, 'control plane')) ?? (await live()) ?? (await ready(routerUrl, 'router'));
      if (fault === undefined) return;
      if (cancelled.aborted) throw new AppError('cancelled', 'perch up was stopped while it started');
      if (Date.now() > deadline) throw new AppError('timeout', `perch up: after ${timeoutMs / 1_000} s ${fault}`);
      await pause(50);
    }
  } finally {
    await client.close();
  }
}
