import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import type { ExternalRow } from '@perch/fleet';
import { type CounterMetric, Metrics } from '@perch/platform';
import { createTritonControl, type TritonControl } from '@perch/triton/control';

const callTimeoutMs = 3_000;
/** The deadline ends our call, not the load. */
const loadTimeoutMs = 120_000;

/** Connections to Tritons without an agent, one each. */
@Injectable()
export class ExternalTritons implements BeforeApplicationShutdown {
  private readonly open = new Map<string, { key: string; control: TritonControl }>();
  private readonly calls: CounterMetric<'call' | 'outcome'>;

  constructor(metrics: Metrics) {
    this.calls = metrics.counter(
      'perch_external_triton_calls_total',
      'Calls to Tritons without an agent by outcome: ok or the kind of fault.',
      ['call', 'outcome'],
    );
  }

  of({ id, grpc, headers }: ExternalRow): TritonControl {
    const key = JSON.stringify([grpc, headers]);
    const known = this.open.get(id);
    if (known?.key === key) return known.control;
    known?.control.close();
    const control = createTritonControl({
      grpc,
      headers,
      timeoutMs: callTimeoutMs,
      loadTimeoutMs,
      onCall: (call, outcome) => this.calls.add({ call, outcome }),
    });
    this.open.set(id, { key, control });
    return control;
  }

  forget(id: string): void {
    this.open.get(id)?.control.close();
    this.open.delete(id);
  }

  beforeApplicationShutdown(): void {
    for (const id of [...this.open.keys()]) this.forget(id);
  }
}
