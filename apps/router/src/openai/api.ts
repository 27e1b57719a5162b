import type { EventFormat } from '../serving/reply-events.ts';

/** What replies say of their request. */
export interface About {
  /** As the client wrote it. */
  model: string;
  requestId: string;
  /** Unix seconds. */
  created: number;
}

/** One request of an OpenAI path, understood. */
export interface ApiRequest {
  model: string;
  /** As the endpoint's task takes it. */
  body: Record<string, unknown>;
  /** The reply in OpenAI's shape, of one in the task's; throws `module` when it is none. `state`: of the call's processing. */
  reply(value: unknown, about: About, state: Record<string, unknown>): unknown;
  /** There when the client asked for events. */
  events?(about: About): EventFormat;
}

export interface OpenAiApi {
  /** Of endpoints that it can use. */
  task: string;
  /** `about` is there, but for the model, before the body is. Throws `invalid` that names the parameter. */
  read(body: unknown): ApiRequest;
}
