import { canonicalJson } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { inputOf } from './decision-input.plan.ts';
import { explainDecision, sameDecision } from './explain.plan.ts';
import { viewRollout } from './rollout-view.ts';
import { decided, noEvidence, RolloutSandbox, specOf } from './rollout-world.fake.ts';
import { decideStep } from './statistics/step.decide.ts';

const counts = (metric: string, n: number, x: number) => ({
  metric,
  epochs: [{ epoch: 1, share: 0.01, stableEvents: 0, candidateEvents: x }],
  stable: { n, x: 0 },
  candidate: { n, x },
  whole: { stable: { n, x: 0 }, candidate: { n, x } },
});

function shifting(policy: object = {}): RolloutSandbox {
  const box = new RolloutSandbox();
  box.sight.spec = specOf({ policy });
  box.publish(2);
  return box.settle();
}

describe('what a decision looks at', () => {
  const evidence = { ...noEvidence, metrics: [counts('error', 900, 2), counts('slow', 900, 2), counts('odd', 900, 0)] };

  it('takes r0 of the baseline, margins of the policy, and what is usual for the rest', () => {
    const policy = { error: { margin: { absolute: 0.1, relative: 0 } }, flags: [{ name: 'odd' }] };
    const { rollout, now } = shifting(policy);
    const input = inputOf(rollout, evidence, new Date(now.getTime() + 5_000));
    expect(input).toMatchObject({ stage: 'shifting', share: 0.01, sinceStepMs: 5_000, requestsPerMinute: 600 });
    expect(input.metrics).toMatchObject([
      { metric: 'error', r0: 1, margin: { absolute: 0.1, relative: 0 } },
      { metric: 'slow', r0: 1.25, margin: { absolute: 0.02, relative: 0.4 } },
      { metric: 'odd', r0: 1.25, margin: { absolute: 0.005, relative: 0.2 } },
    ]);
  });

  it('takes the smallest margin that the traffic can prove, where the policy leaves it to that', () => {
    const { rollout, now, events } = shifting({ margin: 'auto', withinMs: 3_600_000 });
    const { margin } = inputOf(rollout, evidence, now).metrics[0]!;
    expect(margin.relative).toBe(0);
    expect(margin.absolute).toBeGreaterThan(0.0001);
    expect(margin.absolute).toBeLessThan(0.1);
    expect(events[1]!.message).toMatch(/[\d.]+ points are the smallest margin/);
  });

  it('knows by which gap a weight was chosen', () => {
    const box = shifting();
    const reading = { metric: 'error', stable: bounds, candidate: bounds, gap: 0.02, margin: 0.1, e: 1, weight: 1 };
    box.decision = decided('shift', { share: 0.05, readings: [reading] });
    box.step();
    const [error, slow] = inputOf(box.rollout, evidence, box.now).metrics;
    expect([error!.stepGap, slow!.stepGap]).toEqual([0.02, undefined]);
  });

  it('is enough to decide again, also when it was stored, and to say why', () => {
    const box = shifting();
    const bad = { ...noEvidence, candidateEvents: 9, fallbacks: 9, metrics: [counts('error', 900, 9)] };
    const input = inputOf(box.rollout, bad, box.now);
    const decision = decideStep(input);
    expect(decision.next).toBe('roll_back');
    const stored = JSON.parse(JSON.stringify({ input, decision }));
    expect(canonicalJson(stored.input)).toBe(canonicalJson(input));
    expect(sameDecision(stored.decision, decideStep(stored.input))).toBe(true);
    expect(sameDecision({ ...decision, e: 1 }, decision)).toBe(false);
    const sentences = explainDecision(viewRollout(box.rollout), decision, input).join('\n');
    expect(sentences).toContain('Version 2 of text/a is shifting at 1 %, beside stable version 1');
    expect(sentences).toContain('error happened 9 times in 900 for the candidate and 0 times in 900 for stable');
    expect(sentences).toContain('at 20 it goes back');
  });

  it('is nothing where a person decided', () => {
    const box = shifting();
    box.say('promote', 'urgent');
    const sentences = explainDecision(viewRollout(box.rollout), null, null);
    expect(sentences[0]).toBe('Version 2 of text/a has taken over (stable was version 1): promoted by ada: urgent');
    expect(sentences).toHaveLength(2);
  });
});

const bounds = { n: 1, x: 0, lower: 0, upper: 1 };
