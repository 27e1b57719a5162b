import { AppError } from '@perch/contracts';
import type { AdminClient } from './admin.client.ts';
import { type CliSettings, readSettings } from './cli.config.ts';
import { colorsFor } from './color.ts';
import { type Context, ContextStore } from './context.store.ts';
import { type Output, outputs } from './output.ts';

export interface GlobalOptions {
  output?: string;
  context?: string;
  id?: string;
  yes?: boolean;
  debug?: boolean;
}

/** One run of the program: its settings, whom it talks to, and where its words go. */
export class Invocation {
  readonly settings: CliSettings;
  readonly output: Output;
  readonly contexts: ContextStore;
  private client: AdminClient | undefined;

  constructor(
    readonly global: GlobalOptions,
    settings?: CliSettings,
  ) {
    this.settings = settings ?? readSettings();
    const output = global.output ?? 'table';
    if (!outputs.some((known) => known === output))
      throw new AppError('invalid', `--output: wants ${outputs.join(', ')}, got "${output}"`);
    this.output = output as Output;
    this.contexts = new ContextStore(this.settings.configDir);
  }

  /** Words for a person beside the result. */
  note(sentence: string): void {
    const { yellow } = colorsFor(process.stderr, this.settings.color);
    process.stderr.write(`${sentence.replace(/^(warning|note):/, (word) => yellow(word))}\n`);
  }
  /** The same, but only where somebody watches. */
  hint(sentence: string): void {
    if (this.output === 'table' && process.stderr.isTTY) this.note(sentence);
  }
  get interactive(): boolean {
    return Boolean(process.stdin.isTTY && process.stderr.isTTY);
  }

  /**
   * Whom to talk to. PERCH_URL goes before contexts; `--context` before `--id` (ClearML's), that before PERCH_CONTEXT and
   * the current one. An unknown `--id` is a warning only: pasted command lines carry ids of other installations.
   */
  async target(): Promise<{ name: string; context: Context }> {
    const { url, apiKey, routerUrl } = this.settings;
    if (url && !this.global.context) return { name: 'PERCH_URL', context: trimmed({ url, routerUrl, apiKey }) };
    const file = await this.contexts.read();
    const wanted = this.global.context ?? this.byId(file.contexts) ?? this.settings.context ?? file.current;
    if (!wanted)
      throw new AppError(
        'invalid',
        'no context yet: start everything here with perch up, or name a control plane with perch login URL',
      );
    const context = file.contexts[wanted];
    if (!context)
      throw new AppError(
        'not_found',
        `there is no context ${wanted}; perch context list shows them, perch login adds one`,
      );
    const merged = { ...context, apiKey: apiKey ?? context.apiKey, routerUrl: routerUrl ?? context.routerUrl };
    return { name: wanted, context: trimmed(merged) };
  }

  private byId(contexts: Record<string, Context>): string | undefined {
    const { id } = this.global;
    if (id === undefined || contexts[id]) return id;
    this.note(`warning: --id ${id} is not the name of a context (perch context list); going on with the current one`);
    return undefined;
  }

  async admin(routerUrl?: string): Promise<AdminClient> {
    if (this.client) return this.client;
    const { context } = await this.target();
    const { AdminClient } = await import('./admin.client.ts');
    this.client = new AdminClient({ ...context, ...(routerUrl ? { routerUrl: routerUrl.replace(/\/+$/, '') } : {}) });
    return this.client;
  }

  async close(): Promise<void> {
    await this.client?.close();
  }
}

const bare = (url: string) => url.trim().replace(/\/+$/, '');

const trimmed = (context: { url: string; routerUrl?: string | undefined; apiKey?: string | undefined }): Context => ({
  url: bare(context.url),
  ...(context.routerUrl ? { routerUrl: bare(context.routerUrl) } : {}),
  ...(context.apiKey ? { apiKey: context.apiKey } : {}),
});
