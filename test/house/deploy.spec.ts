import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const apps = readdirSync(join(root, 'apps')).filter((app) => existsSync(join(root, 'apps', app, 'package.json')));

/** Settings an app knows: every PERCH_… word of its settings files. */
const settingsOf = (app: string): Set<string> => {
  const files = readdirSync(join(root, 'apps', app, 'src'), { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.config.ts'));
  const own = files.flatMap((file) => read(`apps/${app}/src/${file}`).match(/PERCH_[A-Z0-9_]+/g) ?? []);
  return new Set([...own, ...(read('libs/platform/src/env.config.ts').match(/PERCH_[A-Z0-9_]+/g) ?? [])]);
};

describe('container files', () => {
  it.each(apps)('%s has one that builds this app and runs unprivileged', (app) => {
    const text = read(`deploy/containers/${app}.Containerfile`);
    expect(text).toContain(`--workspace @perch/${app} `);
    expect(text).toContain(`ENTRYPOINT ["node", "apps/${app}/dist/main.js"]`);
    expect(text.indexOf('USER node')).toBeGreaterThan(text.lastIndexOf('RUN '));
    for (const [, path] of text.matchAll(/--from=build \S+ \/perch\/(\S+)/g))
      if (path !== 'node_modules') expect(existsSync(join(root, path!)), path).toBe(true);
    const known = settingsOf(app);
    expect((text.match(/PERCH_[A-Z0-9_]+/g) ?? []).filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('the image of Triton and agent in one', () => {
  it('makes the agent the parent, unprivileged, with settings that it knows', () => {
    const text = read('deploy/containers/supervised.Containerfile');
    expect(text).toContain('ENTRYPOINT ["node", "apps/agent/dist/main.js", "--supervise", "--", "tritonserver"]');
    expect(text.indexOf('USER 1000')).toBeGreaterThan(text.lastIndexOf('RUN '));
    const known = settingsOf('agent');
    expect((text.match(/PERCH_[A-Z0-9_]+/g) ?? []).filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('compose.yaml', () => {
  const compose = parse(read('deploy/compose.yaml'));
  const services: [string, Record<string, never>][] = Object.entries(compose.services);

  it('holds Postgres, an S3 server, Triton and the programs, and every volume it names', () => {
    expect(Object.keys(compose.services)).toEqual(
      expect.arrayContaining(['postgres', 's3', 'triton', 'control-plane', 'agent', 'router']),
    );
    const used = services
      .flatMap(([, service]) => (service['volumes'] as string[] | undefined) ?? [])
      .map((volume) => volume.split(':')[0]);
    expect(used.filter((volume) => !(volume! in compose.volumes))).toEqual([]);
  });

  it('gives programs only settings that they know', () => {
    for (const app of ['control-plane', 'agent', 'router']) {
      const known = settingsOf(app);
      expect(
        Object.keys(compose.services[app].environment).filter((name) => !known.has(name)),
        app,
      ).toEqual([]);
      expect(existsSync(join(root, compose.services[app].build.dockerfile))).toBe(true);
    }
  });

  it('has no secret with a default, and nothing that listens beyond this machine', () => {
    for (const [name, service] of services) {
      for (const [key, value] of Object.entries((service['environment'] ?? {}) as Record<string, string>))
        if (/SECRET|PASSWORD|KEY(_SERVER|_ROUTER)?$/.test(key) && !/_ID$|ACCESS_KEY$/.test(key))
          expect(value, `${name} ${key}`).toMatch(/:\?/);
      for (const port of (service['ports'] ?? []) as string[]) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
  });

  it('starts Triton with shared memory, limits, explicit control and metrics', () => {
    const { triton } = compose.services;
    expect(triton.shm_size).toBe('1g');
    expect(triton.ulimits).toEqual({ memlock: -1, stack: 67_108_864 });
    expect(triton.command).toEqual(
      expect.arrayContaining([
        '--model-control-mode=explicit',
        '--strict-readiness=false',
        '--allow-metrics=true',
        '--metrics-port=8002',
      ]),
    );
    expect(triton.image).toMatch(/:\?/);
  });
});
