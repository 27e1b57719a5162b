import { createHmac } from 'node:crypto';
import { webhookEvents } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideDelivery, payloadOf, signatureOf, toldTypes, wantedTypes } from './webhook.decide.ts';

const half = () => 0.5;
const hour = 3_600_000;
const tried = (status: number | null, more: Partial<Parameters<typeof decideDelivery>[0]> = {}) =>
  decideDelivery(
    { sending: { status, error: status === null ? 'gone' : null, durationMs: 1 }, tries: 1, failures: 1, eventAgeMs: 0, ...more },
    half,
  ); // biome-ignore format: one call

describe('decideDelivery', () => {
  it.each([
    ['taken', 200, {}, { step: 'delivered' }],
    ['taken without a body', 204, { tries: 99, failures: 99, eventAgeMs: 99 * hour }, { step: 'delivered' }],
    ['a first refusal', 404, {}, { step: 'retry', waitMs: 750 }],
    ['a redirect is a refusal', 302, { tries: 5, failures: 5 }, { step: 'give_up', waitMs: 0 }],
    ['a fifth refusal', 400, { tries: 5, failures: 5 }, { step: 'give_up', waitMs: 0 }],
    ['too busy is no refusal', 429, { tries: 5, failures: 5 }, { step: 'retry', waitMs: 12_000 }],
    ['broken for long', 500, { tries: 99, failures: 99, eventAgeMs: 12 * hour }, { step: 'retry', waitMs: 225_000 }],
    ['broken for too long', 500, { tries: 99, failures: 99, eventAgeMs: 12 * hour + 1 }, { step: 'give_up', waitMs: 225_000 }],
    ['nobody there', null, { tries: 3, failures: 3 }, { step: 'retry', waitMs: 3_000 }],
    ['an old event is tried as well', null, { eventAgeMs: 20 * hour }, { step: 'retry', waitMs: 750 }],
    ['nobody there for an old event', null, { failures: 3, eventAgeMs: 20 * hour }, { step: 'give_up', waitMs: 3_000 }],
  ] as const)('%s', (_name, status, more, step) => expect(tried(status, more)).toEqual(step)); // biome-ignore format: a table

  it('never waits over five minutes, and always ends', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.option(fc.integer({ min: 100, max: 599 })),
        (failures, status) => {
          const next = tried(status, { failures, tries: failures, eventAgeMs: 13 * hour });
          if (next.step === 'retry') expect(failures).toBeLessThan(5);
          if (next.step !== 'delivered') expect(next.waitMs).toBeLessThanOrEqual(300_000);
        },
      ),
    );
  });
});

describe('payloadOf', () => {
  const event = {
    id: 7,
    type: 'version.tag',
    subject: 'nlp/minilm/3',
    at: '2026-01-01T00:00:00.000Z',
    data: { to: ['prod'] },
  };

  it('says what it is about, in fields too', () => {
    expect(payloadOf(event)).toEqual({
      id: expect.stringMatching(/^7-[0-9a-f]{16}$/),
      type: 'version.tagged',
      at: event.at,
      subject: 'nlp/minilm/3',
      data: { model: 'nlp/minilm', version: 3, to: ['prod'] },
    });
    expect(payloadOf({ ...event, type: 'rollout.step', subject: 'text/a/7' }).data).toMatchObject({
      endpoint: 'text/a/7',
    });
  });

  it('has one id however often it is made, and another one where the number means another event', () => {
    expect(payloadOf(event)).toEqual(payloadOf({ ...event }));
    expect(payloadOf({ ...event, at: '2026-01-01T00:00:00.001Z' }).id).not.toBe(payloadOf(event).id);
  });
});

describe('what is told', () => {
  it('each event has a type in the outbox, and no two the same', () => {
    expect(new Set(toldTypes).size).toBe(webhookEvents.length);
    expect(wantedTypes([])).toEqual(toldTypes);
    expect(wantedTypes(['version.published', 'rollout.step'])).toEqual(['version.publish', 'rollout.step']);
  });
});

describe('signatureOf', () => {
  it('is what the documentation says', () => {
    const hex = createHmac('sha256', 'secret').update('1790000000.{"a":1}').digest('hex');
    expect(signatureOf('secret', '{"a":1}', 1_790_000_000)).toBe(`t=1790000000,v1=${hex}`);
  });
});
