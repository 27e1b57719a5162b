import { describe, expect, it } from 'vitest';
import { readControlPlaneConfig, readMigrateConfig } from './control-plane.config.ts';

const good = { PERCH_DATABASE_URL: 'postgres://u:p@localhost:5432/perch', PERCH_STORE_URL: 'file:///var/lib/perch' };
const faultOf = (env: Record<string, string>): string => {
  try {
    readControlPlaneConfig(env);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('settings of the control plane', () => {
  it('wants two variables and has defaults for the others', () => {
    expect(readControlPlaneConfig(good)).toMatchObject({
      PERCH_LISTEN: { host: '127.0.0.1', port: 8080 },
      PERCH_MIGRATE_ON_START: true,
      PERCH_ROUTER_GRACE_MS: 600_000,
      PERCH_LOG_LEVEL: 'info',
    });
    expect(readMigrateConfig({ PERCH_DATABASE_URL: good.PERCH_DATABASE_URL })).toMatchObject({});
  });

  it('lists every bad variable in one error', () => {
    const fault = faultOf({
      PERCH_DATABASE_URL: 'mysql://x',
      PERCH_STORE_URL: '/var/lib/perch',
      PERCH_LISTEN: 'nowhere',
      PERCH_BOOTSTRAP_ADMIN_KEY: 'short',
      PERCH_MIGRATE_ON_START: 'perhaps',
      PERCH_ROUTER_GRACE_MS: '5',
      PERCH_LOG_LEVEL: 'loud',
    });
    for (const name of [
      'PERCH_DATABASE_URL: wants postgres://',
      'PERCH_STORE_URL: wants file:///',
      'PERCH_LISTEN: wants host:port',
      'PERCH_BOOTSTRAP_ADMIN_KEY: wants at least 16',
      'PERCH_MIGRATE_ON_START',
      'PERCH_ROUTER_GRACE_MS',
      'PERCH_LOG_LEVEL',
    ])
      expect(fault).toContain(name);
    expect(fault).not.toContain('short');
  });

  it('names what is missing', () => {
    expect(faultOf({})).toMatch(/PERCH_DATABASE_URL: wants .*; PERCH_STORE_URL: wants /);
  });

  it.each([
    ['PERCH_TLS_CERT', '/c.pem', 'PERCH_TLS_CERT: wants PERCH_TLS_KEY beside it'],
    ['PERCH_S3_SECRET_ACCESS_KEY', 's', 'PERCH_S3_SECRET_ACCESS_KEY: wants PERCH_S3_ACCESS_KEY_ID beside it'],
  ])('%s alone is refused', (name, value, fault) => expect(faultOf({ ...good, [name]: value })).toContain(fault));

  it.each([
    ['s3://models', ''],
    ['s3://models/prefix/deep', ''],
    ['file:///var/lib/with%20space', ''],
    ['s3://', 'PERCH_STORE_URL'],
    ['http://x', 'PERCH_STORE_URL'],
    ['file://host/x', 'PERCH_STORE_URL'],
  ])('store %s: %j', (url, fault) => expect(faultOf({ ...good, PERCH_STORE_URL: url })).toContain(fault));
});
