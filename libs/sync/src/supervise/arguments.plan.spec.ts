import { describe, expect, it } from 'vitest';
import { planCommand, type WantedServer } from './arguments.plan.ts';

const wanted: WantedServer = {
  http: '127.0.0.1:18000',
  grpc: '[::1]:8001',
  metrics: '127.0.0.1:8002',
  repository: '/models',
};
const plan = (words: string[], over: Partial<WantedServer> = {}) => planCommand(words, { ...wanted, ...over });

describe('planCommand', () => {
  it('fills in what is missing, and only that', () => {
    expect(plan(['tritonserver', '--id=a'])).toEqual({
      command: 'tritonserver',
      args: [
        '--id=a',
        '--model-repository=/models',
        '--model-control-mode=explicit',
        '--http-port=18000',
        '--strict-readiness=false',
        '--exit-on-error=false',
      ],
      filled: expect.arrayContaining(['--http-port=18000']),
      faults: [],
      backendDirectory: '/opt/tritonserver/backends',
      exitTimeoutMs: 30_000,
    });
    const whole = [
      '/opt/bin/tritonserver',
      '--model-store',
      '/models/',
      '--model-control-mode',
      'explicit',
      '--http-port',
      '18000',
      '--grpc-port=8001',
      '--strict-readiness',
      '--exit-on-error=true',
      '--backend-directory=/backends',
      '--exit-timeout-secs=7',
    ];
    expect(plan(whole)).toMatchObject({
      args: whole.slice(1),
      filled: [],
      faults: [],
      backendDirectory: '/backends',
      exitTimeoutMs: 7_000,
    });
  });

  it.each<[string, string[], RegExp]>([
    [
      'another repository',
      ['--model-repository=/other'],
      /--model-repository=\/other is not PERCH_TRITON_REPOSITORY \(\/models\)/,
    ],
    ['polling', ['--model-control-mode=poll'], /--model-control-mode=poll does not let an agent load/],
    ['all models at the start', ['--load-model=*'], /--load-model=\* loads past the agent/],
    ['another HTTP port', ['--http-port=8000'], /--http-port=8000 is not the port of PERCH_TRITON_HTTP/],
    ['another gRPC port', ['--grpc-port', '9001'], /--grpc-port=9001 is not the port of PERCH_TRITON_GRPC/],
    ['another metrics port', ['--metrics-port=9'], /--metrics-port=9 is not the port of PERCH_TRITON_METRICS/],
    ['no gRPC', ['--allow-grpc=false'], /--allow-grpc=false shuts the agent out/],
    ['no metrics', ['--allow-metrics=0'], /--allow-metrics=false closes PERCH_TRITON_METRICS/],
  ])('refuses %s', (_, args, fault) => {
    expect(plan(['tritonserver', ...args]).faults).toEqual([expect.stringMatching(fault)]);
  });

  it('tells every fault at once', () => {
    expect(
      plan(['tritonserver', '--model-control-mode=none', '--http-port=1', '--allow-http=false']).faults,
    ).toHaveLength(3);
  });

  it('takes one of several repositories, and one model at the start', () => {
    const args = ['--model-repository=/a', '--model-repository=/models', '--load-model=mine', '--http-port=18000'];
    expect(plan(['tritonserver', ...args]).faults).toEqual([]);
  });

  it('finds the server behind another command, and leaves scripts as they are', () => {
    const behind = plan(['numactl', '--cpunodebind=0', '/opt/tritonserver/bin/tritonserver', '--http-port=18000']);
    expect(behind).toMatchObject({ command: 'numactl', faults: [] });
    expect(behind.args).toContain('--model-control-mode=explicit');
    expect(plan(['/start.sh', '--http-port=1'])).toMatchObject({
      args: ['--http-port=1'],
      filled: [],
      faults: [],
      backendDirectory: null,
    });
    expect(plan([]).faults).toEqual([expect.stringContaining('tritonserver')]);
  });
});
