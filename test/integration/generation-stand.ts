import { type RouteTarget, sha256Hex } from '@perch/contracts';
import { createTritonControl } from '@perch/triton/control';
import OpenAI from 'openai';
import { route, target } from '../../bench/control-stub.mjs';
import { bigramModel, byteEncoder, byteTokenizer, modelVocabulary } from '../support/generation.ts';
import { type ModelServer, putModel } from '../support/real-triton.ts';
import { RouterStand } from './router-stand.ts';

const config = (
  output: string,
) => `platform: "onnxruntime_onnx" max_batch_size: 8 instance_group { count: 1 kind: KIND_CPU }
input { name: "input_ids" data_type: TYPE_INT64 dims: [ -1 ] }
output { name: "${output}" data_type: TYPE_FP32 dims: [ -1, ${output === 'logits' ? modelVocabulary : 3} ] }`;

const key = (secret: string, endpoints: string[] = []) => ({ hash: sha256Hex(secret), endpoints });

/** A router in front of a decoder and an encoder whose every answer is known, and OpenAI's own client. */
export class GenerationStand {
  stand!: RouterStand;

  private constructor(private readonly server: ModelServer) {}

  static async start(server: ModelServer): Promise<GenerationStand> {
    const it = new GenerationStand(server);
    const control = createTritonControl({ grpc: server.grpc, timeoutMs: 30_000 });
    for (const [name, output, bytes] of [
      ['bigram', 'logits', bigramModel()],
      ['bytes', 'last_hidden_state', byteEncoder()],
    ] as const) {
      await putModel(server.repository, name, { config: config(output), versions: { 1: bytes } });
      await control.load(name, { timeoutMs: 30_000 });
    }
    await control.close();
    it.stand = await RouterStand.start();
    await it.publish();
    return it;
  }

  /** A target of the decoder; version 2 and so on are the same model under other deployments. */
  decoder(deployment: string, fields: Partial<RouteTarget> = {}): RouteTarget {
    return target({
      deployment,
      tritonModel: 'bigram',
      servers: ['a'],
      maxBatchSize: 8,
      inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1] }],
      outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, -1, modelVocabulary] }],
      processing: {
        builtin: 'text-generation',
        options: {
          stopTokens: ['<|end|>'],
          chatTemplate: { system: '{content}', user: '{content}', assistant: '{content}', reply: '' },
        },
      },
      files: [this.tokenizer()],
      ...fields,
    });
  }

  tokenizer() {
    return this.stand.control.addBlob('tokenizer.json', Buffer.from(byteTokenizer()));
  }

  async publish(endpoints: Parameters<RouterStand['publish']>[0]['endpoints'] = {}, servers = {}): Promise<void> {
    const encoder = target({
      deployment: 'encoder',
      tritonModel: 'bytes',
      servers: ['a'],
      maxBatchSize: 8,
      inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1] }],
      outputs: [{ name: 'last_hidden_state', datatype: 'FP32', shape: [-1, -1, 3] }],
      processing: { builtin: 'text-embedding', options: { normalize: false } },
      files: [this.tokenizer()],
    });
    await this.stand.publish({
      servers: { a: { http: this.server.http, grpc: this.server.grpc }, ...servers },
      keys: { k1: key('all'), k2: key('embeds', ['embed/*']) },
      endpoints: {
        'text/decoder': route([this.decoder('d2', { version: 2 }), this.decoder('d1')], { access: 'key' }),
        'embed/bytes': route([encoder], { access: 'key' }),
        open: route([this.decoder('o1')]),
        small: route([this.decoder('s1')], { maxBodyBytes: 200 }),
        ...endpoints,
      },
    });
  }

  client(apiKey = 'all'): OpenAI {
    return new OpenAI({ apiKey, baseURL: `${this.stand.router.address}/v1`, maxRetries: 0 });
  }

  async stop(): Promise<void> {
    await this.stand?.stop();
    await this.server.remove();
  }
}
