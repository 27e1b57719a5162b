import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Allow, Answers, Idempotent } from '../admin-api/http.ts';
import { openApiDocument } from './document.ts';

const bird = z
  .object({ name: z.string().min(1).meta({ id: 'BirdName' }), wings: z.number().default(2) })
  .meta({ id: 'Bird' });
const search = z.object({ limit: z.coerce.number().int().default(10), name: z.string() });

@Controller('api/v1/birds')
@Allow('viewer')
class BirdController {
  @Get()
  @Answers(z.object({ items: z.array(bird) }), 'All birds')
  list(@Query({ schema: search }) _query: unknown) {}

  @Post(':name/eggs')
  @Allow('publisher')
  @Idempotent()
  @Answers(bird, 'Lay')
  lay(
    @Param('name', { schema: bird.shape.name }) _name: string,
    @Body({ schema: z.preprocess((v) => v, bird) }) _body: unknown,
  ) {}

  @Delete(':name')
  @HttpCode(204)
  @Answers(null, 'Let go')
  remove(@Param('name') _name: string) {}
}

@Controller('internal/v1/nests')
class NestController {
  @Get()
  list() {}
}

// biome-ignore lint/suspicious/noExplicitAny: the document is plain JSON
const document = openApiDocument([NestController, BirdController], '1.2.3') as any;

describe('the OpenAPI document', () => {
  it('holds the routes below /api/v1 and no other', () => {
    expect(Object.keys(document.paths)).toEqual(['/api/v1/birds', '/api/v1/birds/{name}', '/api/v1/birds/{name}/eggs']);
    expect(document.info.version).toBe('1.2.3');
  });

  it('takes path, query and header parameters from the decorators', () => {
    const { parameters } = document.paths['/api/v1/birds'].get;
    expect(parameters).toEqual([
      { name: 'limit', in: 'query', required: false, schema: expect.objectContaining({ default: 10 }) },
      { name: 'name', in: 'query', required: true, schema: { type: 'string' } },
    ]);
    expect(document.paths['/api/v1/birds/{name}/eggs'].post.parameters).toEqual([
      { name: 'name', in: 'path', required: true, schema: { $ref: '#/components/schemas/BirdName' } },
      { name: 'Idempotency-Key', in: 'header', required: false, schema: { type: 'string' } },
    ]);
    expect(document.paths['/api/v1/birds/{name}'].delete.parameters[0].schema).toEqual({ type: 'string' });
  });

  it('a request whose defaults may be left out is a component of its own', () => {
    const { post } = document.paths['/api/v1/birds/{name}/eggs'];
    expect(post.requestBody.content['application/json'].schema).toEqual({ $ref: '#/components/schemas/BirdInput' });
    expect(post.responses[201].content['application/json'].schema).toEqual({ $ref: '#/components/schemas/Bird' });
    expect(document.components.schemas.BirdInput.required).toEqual(['name']);
    expect(document.components.schemas.Bird.required).toEqual(['name', 'wings']);
    expect(document.components.schemas.BirdNameInput).toBeUndefined();
  });

  it('names role, status and problem of each operation', () => {
    const { post } = document.paths['/api/v1/birds/{name}/eggs'];
    expect(post).toMatchObject({
      operationId: 'bird.lay',
      'x-perch-role': 'publisher',
      tags: ['bird'],
      summary: 'Lay',
    });
    const { responses } = document.paths['/api/v1/birds/{name}'].delete;
    expect(responses[204]).toEqual({ description: 'Let go' });
    expect(responses.default.content['application/problem+json'].schema).toEqual({
      $ref: '#/components/schemas/Problem',
    });
  });
});
