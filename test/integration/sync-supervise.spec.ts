import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DesiredModel } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { minilmFolder } from '../support/models.ts';
import { scaleModel } from '../support/onnx.ts';
import { missingReason } from '../support/real-parts.ts';
import { MemoryCage, SupervisedSite } from './supervised-site.ts';

const mib = 1024 ** 2;
const until = (check: () => unknown, timeout = 30_000) => vi.waitFor(check, { timeout, interval: 20 });
const missing = missingReason('triton');

describe.skipIf(missing)('an agent that is the parent of Triton', () => {
  let site: SupervisedSite;
  beforeAll(async () => {
    site = await SupervisedSite.open({ env: { PERCH_DRAIN_TIMEOUT_MS: '0' } });
    await site.agent.start();
  });
  afterAll(() => site?.close());

  const ready = (names: string[]) =>
    until(() => expect(names.map((name) => site.stateOf(name))).toEqual(names.map(() => 'ready')));
  const publish = (...models: [string, DesiredModel][]) => {
    site.stand.publish(Object.fromEntries(models));
    return models.map(([name]) => name);
  };
  const good = () => [site.stand.model(scaleModel(2), 1), site.stand.model(scaleModel(3), 2)];

  it('starts it with what its arguments lacked, and tells what it is', async () => {
    const names = publish(...good());
    await ready(names);
    expect(await site.infer(names[0]!)).toEqual([2, 2, 2, 2]);
    await until(() => expect(site.stand.state?.facts).toBeDefined());
    expect(site.stand.state!.facts).toMatchObject({
      supervised: true,
      backends: ['onnxruntime', 'python'],
      tensorrt: null,
      gpus: [],
    });
    expect(site.stand.state!.facts!.ramBytes).toBeGreaterThan(100 * mib);
    expect(site.supervision).toEqual({ state: 'running', restarts: 0, lastExit: null, console: [] });
    expect(await site.health()).toMatchObject({ ready: true });
    await until(() => expect(site.stand.state?.usage?.ramBytes).toBeGreaterThanOrEqual(64 * mib));
    const environment = await readFile(`/proc/${site.tritonPid}/environ`, 'utf8');
    expect(environment).toContain('LD_LIBRARY_PATH=');
    expect(environment).not.toContain('PERCH_');
  });

  it('measures what the server grows by when a model comes in alone', async () => {
    const bytes = await readFile(join(await minilmFolder(), 'model.onnx'));
    const [name, model] = site.stand.model(bytes, 9, { inputs: [], outputs: [], maxBatchSize: 0 });
    publish(...good(), [name, { ...model, measure: true }]);
    await ready([name]);
    const { memory } = site.stand.state!.models[name]!;
    expect(memory!.ramBytes).toBeGreaterThan(60 * mib);
    expect(memory!.ramBytes).toBeLessThan(1_000 * mib);
    expect(memory!.gpuBytes).toEqual({});
    console.log(
      `MiniLM of ${Math.round(bytes.length / mib)} MiB measured as ${Math.round(memory!.ramBytes / mib)} MiB`,
    );
  });

  it('brings it and its models back after a SIGKILL, from the cache', async () => {
    const names = publish(...good());
    await ready(names);
    const pulled = site.stand.gets.length;
    process.kill(site.tritonPid!, 'SIGKILL');
    await until(() => expect(site.supervision).toMatchObject({ restarts: 1 }));
    await ready(names);
    expect(await site.infer(names[1]!)).toEqual([3, 3, 3, 3]);
    expect(site.stand.gets.length).toBe(pulled);
    expect(site.supervision!.lastExit).toBe('killed by SIGKILL; who sent it is not known');
    expect(site.supervision!.console.join('\n')).toContain('Started GRPCInferenceService');
    expect(site.supervision!.console.length).toBeLessThanOrEqual(40);
    await until(() => expect(site.supervision!.state).toBe('running'));
  });

  it('takes the server of a killed agent over, with its models, and restarts that one too', async () => {
    const names = Object.keys(site.stand.document.models);
    const { tritonPid } = site;
    const reports = site.stand.observed.length;
    await site.agent.crash();
    await until(() => expect(site.stand.observed.length).toBeGreaterThan(reports));
    expect(site.tritonPid).toBe(tritonPid);
    for (const { models } of site.stand.observed.slice(reports))
      expect(names.map((name) => models[name]?.state)).toEqual(names.map(() => 'ready'));
    process.kill(site.tritonPid!, 'SIGKILL');
    await until(() => expect(site.supervision).toMatchObject({ restarts: 1 }));
    expect(site.supervision!.lastExit).toMatch(/how is not known/);
    await ready(names);
  });

  it('holds back the model that takes the server down twice, over a restart, while the others serve', async () => {
    const names = publish(...good());
    await ready(names);
    const { restarts } = site.supervision!;
    const poison = site.python('os.kill(os.getppid(), signal.SIGSEGV); time.sleep(5)', 5);
    const [, late] = publish(poison, site.stand.model(scaleModel(6), 6), ...good());
    await until(() => expect(site.stateOf(poison[0])).toBe('failed'));
    expect(site.reasonOf(poison[0])).toMatch(/^crashes its server: it ended \d times in a row .*SIG(SEGV|ABRT)/);
    await ready([late!, ...names]);
    expect(site.supervision!.restarts - restarts).toBeLessThanOrEqual(3);
    await site.agent.crash();
    await until(() => expect(site.supervision!.restarts).toBe(0));
    await ready([late!, ...names]);
    expect(site.stateOf(poison[0])).toBe('failed');
    expect(site.reasonOf(poison[0])).toMatch(/^crashes its server/);
    expect(site.supervision!.restarts).toBe(0);
    // Other settings are another model: tried again.
    const healed = site.python('pass', 5);
    publish(healed, ...good());
    await ready([healed[0], ...names]);
  });

  it('blames nobody for a model whose own process ends', async () => {
    const { restarts } = site.supervision!;
    const ending = site.python('os._exit(3)', 7);
    const names = publish(ending, ...good());
    await until(() => expect(site.stateOf(ending[0])).toBe('failed'));
    expect(site.reasonOf(ending[0])).not.toMatch(/crashes its server/);
    await ready(names.slice(1));
    expect(site.supervision!.restarts).toBe(restarts);
  });

  it('is one a data folder', async () => {
    expect(await site.command()).toEqual({ code: 1, stderr: expect.stringMatching(/lock: an agent .*PERCH_DATA_DIR/) });
  });

  it('refuses a command that contradicts its settings', async () => {
    const { code, stderr } = await site.command(
      '--supervise',
      '--',
      'tritonserver',
      '--model-control-mode=poll',
      '--grpc-port=1',
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(/--model-control-mode=poll.*--grpc-port=1 is not the port of PERCH_TRITON_GRPC/);
  });

  it('ends it with itself, its models’ processes too', async () => {
    const { tritonPid } = site;
    await site.agent.stop('SIGTERM');
    expect(site.tritonPid).toBeUndefined();
    const left = (await readdir('/proc')).filter((pid) => /^\d+$/.test(pid));
    const groups = await Promise.all(left.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
    const members = groups.map((stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' '));
    expect(members.filter(([state, , group]) => group === String(tritonPid) && state !== 'Z')).toEqual([]);
  });
});

describe.skipIf(missing)('a load that Triton does not come back from', () => {
  it('is told, gets the server drained and restarted, and is not tried again', async () => {
    const env = {
      PERCH_LOAD_DEADLINE_MS: '4000',
      PERCH_STUCK_PATIENCE_MS: '20000',
      PERCH_DRAIN_TIMEOUT_MS: '10000',
      PERCH_EXIT_TIMEOUT_MS: '1000',
    };
    const site = await SupervisedSite.open({ env });
    try {
      await site.agent.start();
      const [served, model] = site.python('pass', 1);
      const [slow, slowModel] = site.python('time.sleep(600)', 2);
      site.stand.publish({ [served]: model });
      await until(() => expect(site.stateOf(served)).toBe('ready'));
      site.stand.publish({ [served]: model, [slow]: slowModel });
      await until(() => expect(site.stand.state).toMatchObject({ leaving: true }));
      expect(site.stateOf(slow)).toBe('stuck');
      expect(site.stand.state!.leavingReason).toContain(slow);
      expect(await site.infer(served)).toEqual([1, 1, 1, 1]);
      // As a drain does once the others are ready elsewhere.
      site.stand.publish({});
      await until(() => expect(site.supervision).toMatchObject({ restarts: 1, state: 'running' }));
      expect(site.supervision!.lastExit).toMatch(/^ended as asked/);
      await until(() => expect(site.stand.state).not.toHaveProperty('leaving'));
      site.stand.publish({ [served]: model, [slow]: slowModel });
      await until(() => expect(site.stateOf(served)).toBe('ready'));
      expect(site.stateOf(slow)).toBe('failed');
      expect(site.reasonOf(slow)).toMatch(/^stuck: it was LOADING for more than 4 s/);
      // The way out of a pod: its preStop hook waits until the control plane says that nothing is served from here.
      const hook = site.command('drain');
      await until(() => expect(site.stand.state).toMatchObject({ leaving: true }));
      site.stand.drained = true;
      expect(await hook).toMatchObject({ code: 0, stderr: expect.stringContaining('drained') });
    } finally {
      await site.close();
    }
  });
});

const cage = new MemoryCage(`perch-supervise-${process.pid}`, 400 * mib);
if (cage.fault) console.warn(`skipped: ${cage.fault}`);

describe.skipIf(missing ?? cage.fault)('a server that the kernel kills for memory', () => {
  afterAll(() => cage.remove());

  it('is named so, and the model that grew is held back', async () => {
    const script = `echo $$ > ${cage.folder}/cgroup.procs; exec "$@"`;
    const site = await SupervisedSite.open({ wrapper: ['sh', '-c', script, 'sh'] });
    try {
      await site.agent.start();
      const [served, model] = site.python('pass', 1);
      site.stand.publish({ [served]: model });
      await until(() => expect(site.stateOf(served)).toBe('ready'));
      const [stub, stubModel] = site.python('self.ballast = bytearray(os.urandom(1)) * (600 * 2**20)', 2);
      site.stand.publish({ [served]: model, [stub]: stubModel });
      await until(() => expect(site.stateOf(stub)).toBe('failed'));
      expect(site.reasonOf(stub)).toMatch(/^killed for memory while it loaded: /);
      expect(site.supervision!.restarts).toBe(0);
      // The kernel takes the one with the highest score: here the server itself.
      const first = "open(f'/proc/{os.getppid()}/oom_score_adj', 'w').write('1000')";
      const hungry = `${first}; self.ballast = bytearray(os.urandom(1)) * (600 * 2**20)`;
      const [big, bigModel] = site.python(hungry, 3);
      site.stand.publish({ [served]: model, [big]: bigModel });
      await until(() => expect(site.stateOf(big)).toBe('failed'));
      expect(site.reasonOf(big)).toMatch(/^crashes its server: .*killed for memory/);
      expect(site.supervision!.lastExit).toMatch(/^killed for memory/);
      await until(() => expect(site.stateOf(served)).toBe('ready'));
    } finally {
      await site.close();
    }
  });
});
