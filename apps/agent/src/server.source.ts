import { Inject, Injectable } from '@nestjs/common';
import type { ObservedServer } from '@perch/contracts';
import { LOGGER, type Logger, pause } from '@perch/platform';
import { FactsSource, type Supervisor, UsageSource } from '@perch/sync';
import { LeavingService } from './leaving.service.ts';

/** Injection token of the parent of Triton; null without --supervise. */
export const SUPERVISOR = Symbol('supervisor');

/** What is told of the server beside its models. */
export type ServerReport = Pick<ObservedServer, 'facts' | 'usage' | 'supervision' | 'leaving' | 'leavingReason'>;

const lookEveryMs = 5_000;
/** The first report waits this long for the first look. */
const firstLookMs = 2_000;

/** The server beside its models: what it is, what it takes, how its process fares. Looked at behind the reports, which wait for nobody. */
@Injectable()
export class ServerSource {
  private readonly stopped = new AbortController();
  private known: Pick<ServerReport, 'facts' | 'usage'> = {};
  private loop: Promise<void> | undefined;

  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly facts: FactsSource,
    private readonly usage: UsageSource,
    private readonly leaving: LeavingService,
    @Inject(SUPERVISOR) private readonly supervisor: Supervisor | null,
  ) {}

  async start(): Promise<void> {
    const first = this.look();
    await Promise.race([first, pause(firstLookMs)]);
    this.loop = this.run(first);
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.loop;
  }

  onChange(listener: () => void): void {
    this.leaving.onChange(listener);
    this.supervisor?.onChange(listener);
  }

  get report(): ServerReport {
    const { reason } = this.leaving;
    return {
      ...this.known,
      ...(this.supervisor ? { supervision: this.supervisor.supervision } : {}),
      ...(reason === undefined ? {} : { leaving: true, leavingReason: reason }),
    };
  }

  /** Why a supervised server cannot serve, or undefined. */
  get standstill(): string | undefined {
    if (!this.supervisor) return undefined;
    const { state, lastExit } = this.supervisor.supervision;
    if (state === 'running') return undefined;
    const words = { starting: 'is starting', backing_off: 'is started again after a pause', stopping: 'is stopping' };
    return `the model server ${words[state]}${lastExit ? `; it ended last: ${lastExit}` : ''}`;
  }

  private async run(first: Promise<void>): Promise<void> {
    await first;
    const { signal } = this.stopped;
    for (await pause(lookEveryMs, signal); !signal.aborted; await pause(lookEveryMs, signal)) await this.look();
  }

  private async look(): Promise<void> {
    try {
      const [facts, usage] = await Promise.all([this.facts.read(), this.usage.report()]);
      this.known = { ...(facts ? { facts } : {}), ...(usage ? { usage } : {}) };
    } catch (error) {
      this.logger.warn('the server’s figures could not be read', { error });
    }
  }
}
