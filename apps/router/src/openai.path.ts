import { isUtf8 } from 'node:buffer';
import { AppError } from '@perch/contracts';
import { type CompiledRoute, type CompiledTable, type FoundRoute, mayCall, resolveServe } from '@perch/routing';
import type { HttpExchange, HttpReply } from './http1/index.ts';
import type { InferencePath } from './inference.path.ts';
import type { About, ApiRequest, OpenAiApi } from './openai/api.ts';
import { chatApi } from './openai/chat.ts';
import { completionsApi } from './openai/completions.ts';
import { embeddingsApi } from './openai/embeddings.ts';
import type { Call } from './serving/call.ts';
import type { Dispatch } from './serving/dispatch.ts';
import type { JudgedReply } from './serving/judged-reply.ts';
import type { KeyRing } from './serving/key-ring.ts';
import { taskOf } from './serving/reply-events.ts';
import type { ShadowCall } from './serving/shadow-call.ts';

const apis: Record<string, OpenAiApi> = {
  '/v1/chat/completions': chatApi,
  '/v1/completions': completionsApi,
  '/v1/embeddings': embeddingsApi,
};

/** A request whose endpoint is named in its body. */
export class OpenAiPending {
  constructor(
    readonly api: OpenAiApi,
    readonly requestId: string,
  ) {}
}

type OpenAiCall = Call & { wanted: ApiRequest; about: About };

/** The most bytes that any endpoint takes: of all, and of those that want no key. */
interface Limits {
  all: number;
  public: number;
}

/** OpenAI's protocol in front of endpoints whose task it has words for: the same calls as `/serve`, told otherwise. */
export class OpenAiPath {
  readonly shape = 'openai';
  private readonly limits = new WeakMap<CompiledTable, Limits>();

  constructor(
    private readonly serve: InferencePath,
    private readonly dispatch: Dispatch,
    private readonly keys: KeyRing,
  ) {}

  /** `path` is decoded. Answers what has no body. Otherwise who asks, and the most bytes to read. Throws what the client is to be told. */
  admit(
    { head }: HttpExchange,
    path: string,
    requestId: string,
  ): HttpReply | { pending: OpenAiPending; limit: number } {
    const { method, headers } = head;
    const table = this.dispatch.table();
    if (path === '/v1/models' || path.startsWith('/v1/models/')) {
      if (method !== 'GET') throw new AppError('invalid', `send GET, not ${method}`);
      return json(this.models(table, headers['authorization'], path.slice('/v1/models/'.length)));
    }
    const api = apis[path];
    if (!api)
      throw new AppError('not_found', `there is no ${path}; there are ${Object.keys(apis).join(', ')}, /v1/models`);
    if (method !== 'POST') throw new AppError('invalid', `send POST, not ${method}`);
    return { pending: new OpenAiPending(api, requestId), limit: this.mostBytes(table, headers['authorization']) };
  }

  /** Finds the endpoint that the body names. Throws what the client is to be told. */
  open(exchange: HttpExchange, { api, requestId }: OpenAiPending): Call {
    const { headers } = exchange.head;
    const bytes = Buffer.concat(exchange.body);
    const asked = api.read(parse(bytes));
    const { route, version } = this.find(asked.model);
    this.keys.check(this.dispatch.table(), headers['authorization'], route);
    const { maxBodyBytes } = route.route;
    if (bytes.length > maxBodyBytes)
      throw new AppError('too_large', `the body is larger than the ${maxBodyBytes} bytes that ${route.name} takes`);
    const targets = route.route.pipeline ? [] : route.targets;
    const mayDo = route.targets.length === 0 && !route.route.pipeline;
    if (!mayDo && !targets.some(({ processing }) => taskOf(processing) === api.task))
      throw new AppError('invalid', `model ${asked.model} is of task ${taskNames(route)}, wanted ${api.task}`);
    const call = this.serve.callOf(exchange, requestId, route, version);
    const body = api.task === 'text-embedding' ? withTextFields(asked.body, route) : asked.body;
    exchange.body = [Buffer.from(JSON.stringify(body))];
    const about = { model: asked.model, requestId, created: Math.floor(Date.now() / 1_000) };
    if (api.task === 'text-embedding') call.state['promptTokens'] = 0; // the built-in adds what it counts
    call.format = asked.events?.(about);
    return Object.assign(call, { wanted: asked, about });
  }

  async answer(call: OpenAiCall): Promise<HttpReply> {
    const reply = await this.serve.answer(call);
    const text = typeof reply.body === 'string' ? reply.body : Buffer.concat(reply.body).toString('utf8');
    const value = call.wanted.reply(JSON.parse(text), call.about, call.state);
    return call.format ? reply : { ...reply, body: JSON.stringify(value) };
  }

  copy(call: ShadowCall): Promise<JudgedReply | undefined> {
    return this.serve.copy(call);
  }

  /** `name`, `name/3` as `/serve` takes it, or `name@3`. */
  private find(model: string): FoundRoute {
    const found = resolveServe(this.dispatch.table(), model.replace(/@([0-9]+)$/, '/$1'));
    if (!found) throw new AppError('not_found', `there is no model ${model}`);
    return found;
  }

  /** What the caller may use; with an id, that one alone. */
  private models(table: CompiledTable, authorization: string | undefined, id: string) {
    const key = authorization === undefined ? undefined : this.keys.find(table, authorization);
    const usable = [...table.endpoints.values()].filter(
      ({ name, route }) => route.access === 'public' || (key && mayCall(key, name)),
    );
    if (id === '') return { object: 'list', data: usable.map(modelOf) };
    const one = usable.find(({ name }) => name === id);
    if (!one) throw new AppError('not_found', `there is no model ${id}`);
    return modelOf(one);
  }

  /** Clients of OpenAI always send some key: an unknown one is as good as none, where there are endpoints that want none. */
  private mostBytes(table: CompiledTable, authorization: string | undefined): number {
    const limits = this.limitsOf(table);
    try {
      this.keys.find(table, authorization);
      return limits.all;
    } catch (error) {
      if (limits.public === 0) throw error;
      return limits.public;
    }
  }

  private limitsOf(table: CompiledTable): Limits {
    let limits = this.limits.get(table);
    if (limits) return limits;
    limits = { all: 0, public: 0 };
    for (const { route } of table.endpoints.values()) {
      limits.all = Math.max(limits.all, route.maxBodyBytes);
      if (route.access === 'public') limits.public = Math.max(limits.public, route.maxBodyBytes);
    }
    this.limits.set(table, limits);
    return limits;
  }
}

const json = (value: unknown): HttpReply => ({
  status: 200,
  contentType: 'application/json',
  headerLines: '',
  body: JSON.stringify(value),
});

function parse(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new AppError('invalid', 'the body is not valid UTF-8');
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new AppError('invalid', 'the body is not JSON');
  }
}

const tasksOf = ({ targets }: CompiledRoute): string[] => [
  ...new Set(targets.map(({ processing }) => taskOf(processing)).filter((task) => task !== undefined)),
];
const taskNames = (route: CompiledRoute): string =>
  route.route.pipeline ? 'pipeline' : tasksOf(route).join(' and ') || 'none';

/** Versions and tasks are of ours; the other fields are OpenAI's. */
const modelOf = (route: CompiledRoute) => ({
  id: route.name,
  object: 'model',
  created: 0,
  owned_by: 'perch',
  task: tasksOf(route)[0] ?? null,
  versions: [...route.byVersion.keys()].sort((a, b) => a - b),
});

/** The texts under each name that a target's options ask for. */
function withTextFields({ input }: Record<string, unknown>, { targets }: CompiledRoute): Record<string, unknown> {
  const fields = targets.map(({ processing }) => processing.options['textField']);
  return Object.fromEntries(
    [...fields, 'input'].filter((name) => typeof name === 'string').map((name) => [name, input]),
  );
}
