import { describe, expect, it } from 'vitest';
import type { CliSettings } from '../cli.config.ts';
import { fileUrl } from './program.plan.ts';
import { readUpOptions, storeSettings } from './up.config.ts';

const settings = (environment: Record<string, string> = {}): CliSettings => ({
  url: undefined,
  apiKey: undefined,
  routerUrl: undefined,
  context: undefined,
  configDir: '/config',
  dataDir: '/data',
  toolsDir: undefined,
  color: true,
  environment,
});

describe('options of perch up', () => {
  it('has a default for everything', () => {
    expect(readUpOptions({}, settings())).toMatchObject({
      dataDir: '/data',
      controlPort: undefined,
      postgresUrl: undefined,
      store: undefined,
      triton: false,
      contextName: 'local',
    });
  });
  it('hears the settings of the control plane, and the flags before them', () => {
    const environment = { PERCH_DATABASE_URL: 'postgres://env/db', PERCH_STORE_URL: 's3://bucket' };
    expect(readUpOptions({}, settings(environment))).toMatchObject({ postgresUrl: 'postgres://env/db', store: {} });
    expect(readUpOptions({ postgres: 'postgres://flag/db', s3: 's3://other/x' }, settings(environment))).toMatchObject({
      postgresUrl: 'postgres://flag/db',
      store: { PERCH_STORE_URL: 's3://other/x' },
    });
  });
  it('hands no key of ours to the children', () => {
    const { environment } = readUpOptions({}, settings({ PERCH_API_KEY: 'pk', PERCH_URL: 'http://x', PATH: '/bin' }));
    expect(environment).toEqual({ PATH: '/bin' });
  });
  it.each([
    [{ port: 'many' }, '--port'],
    [{ port: '70000' }, '--port'],
    [{ routerPort: '-1' }, '--router-port'],
    [{ servers: '0' }, '--servers'],
    [{ servers: 'two' }, '--servers'],
    [{ postgres: 'mysql://x' }, '--postgres'],
    [{ s3: 'ftp://x/y' }, '--s3'],
    [{ s3: 'http://host' }, '--s3'],
  ])('refuses %j, naming the flag', (flags, flag) => {
    expect(() => readUpOptions(flags, settings())).toThrow(flag);
  });
});

describe('an S3 store', () => {
  it.each([
    ['s3://bucket/prefix', { PERCH_STORE_URL: 's3://bucket/prefix' }],
    [
      'http://key:se%2Fcret@127.0.0.1:9000/bucket/a/b?region=eu-1',
      {
        PERCH_STORE_URL: 's3://bucket/a/b',
        PERCH_S3_ENDPOINT: 'http://127.0.0.1:9000',
        PERCH_S3_REGION: 'eu-1',
        PERCH_S3_ACCESS_KEY_ID: 'key',
        PERCH_S3_SECRET_ACCESS_KEY: 'se/cret',
      },
    ],
    [undefined, undefined],
  ])('%s', (text, found) => expect(storeSettings(text)).toEqual(found));
});

it('a folder is a URL with every odd character escaped', () => {
  expect(fileUrl('/a b/c#d/é')).toBe('file:///a%20b/c%23d/%C3%A9');
});
