import { Injectable } from '@nestjs/common';
import { CountStore } from './count.store.ts';
import { FeedbackStore } from './feedback.store.ts';
import { ProvidedStore } from './provided.store.ts';
import { TrafficHistoryStore } from './traffic-history.store.ts';

/** Everything that evidence is kept in. */
@Injectable()
export class EvidenceStore {
  constructor(
    readonly counts: CountStore,
    readonly feedback: FeedbackStore,
    readonly provided: ProvidedStore,
    readonly history: TrafficHistoryStore,
  ) {}
}
