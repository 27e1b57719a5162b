import { BadRequestException, NotFoundException } from '@nestjs/common';
import { AppError, errorCodes } from '@perch/contracts';
import { QueryFailedError } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { asAppError, httpStatus, problemOf } from './problem.filter.ts';

const shown = (error: unknown) => problemOf(asAppError(error, 'GET /x'), 'r1');
const failedQuery = (code: string) =>
  new QueryFailedError('select secret', [], Object.assign(new Error('pg says'), { code }));

describe('problems', () => {
  it('every code has a status and a title', () => {
    for (const code of errorCodes) {
      const problem = problemOf(new AppError(code, 'words'), 'r1');
      expect(problem.status).toBe(httpStatus[code]);
      expect(problem.title).not.toBe('');
    }
  });

  it.each([
    ['an error of ours', new AppError('conflict', 'taken'), 409, 'taken'],
    [
      'a connection that broke',
      Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
      503,
      'database is not reachable',
    ],
    ['Postgres going down', failedQuery('57P01'), 503, 'database is not reachable'],
    ['Postgres full of connections', failedQuery('53300'), 503, 'database is not reachable'],
    [
      'no connection free in time',
      new Error('timeout exceeded when trying to connect'),
      503,
      'database is not reachable',
    ],
    ['a schema that is not there yet', failedQuery('42P01'), 503, 'perch migrate'],
    ['text that no database keeps', failedQuery('22021'), 400, 'NUL'],
    ['a query that ran too long', failedQuery('57014'), 504, 'took too long'],
    ['an unknown route', new NotFoundException('Cannot GET /x'), 404, 'there is no route GET /x'],
    ['a fault found by Nest', new BadRequestException('bad'), 400, 'bad'],
    [
      'a body too large',
      Object.assign(new Error('Request body is too large'), { code: 'FST_ERR_CTP_BODY_TOO_LARGE', statusCode: 413 }),
      413,
      'too large',
    ],
    ['anything else', failedQuery('42601'), 500, 'internal error'],
    ['a thrown text', 'secret', 500, 'internal error'],
    ['a foreign error with a status', Object.assign(new Error('secret'), { statusCode: 400 }), 500, 'internal error'],
  ])('%s', (_name, error, status, words) => {
    const problem = shown(error);
    expect(problem.status).toBe(status);
    expect(problem.detail).toContain(words);
    expect(JSON.stringify(problem)).not.toMatch(/secret|pg says|stack/);
  });

  it('carries the fields at fault and other facts', () => {
    const errors = [{ path: 'name', message: 'wants a text' }];
    expect(shown(new AppError('invalid', 'body: name', { details: { errors, wanted: 1 } }))).toMatchObject({
      errors,
      details: { wanted: 1 },
      requestId: 'r1',
      type: 'urn:perch:problem:invalid',
    });
  });
});
