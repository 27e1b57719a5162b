import type { MigrationInterface, QueryRunner } from 'typeorm';

// No foreign key to endpoints: checking it would wait for the pass that holds the endpoint's row while that pass waits for
// the traffic row, which whoever writes here holds.
const up = [
  `create table rollouts (
    id uuid primary key,
    endpoint text not null,
    row_version integer not null default 1,
    state text not null check (state in
      ('pending', 'verifying', 'shadowing', 'shifting', 'baking', 'promoted', 'rolled_back', 'aborted')),
    run text not null check (run in ('running', 'waiting', 'held')),
    held_by text,
    reason text not null,
    stable jsonb not null,
    candidate jsonb not null,
    policy jsonb not null,
    sticky_header text,
    salt text not null,
    epoch integer not null check (epoch >= 0),
    share double precision not null check (share >= 0 and share < 1),
    epochs jsonb not null,
    baseline jsonb,
    by_hand boolean not null,
    allow_breaking boolean not null,
    wish_seen text,
    restarts integer not null default 0,
    queued jsonb,
    decision jsonb,
    decided_at timestamptz,
    pairs jsonb,
    fallbacks integer not null default 0,
    started_at timestamptz not null,
    started_by text not null,
    step_at timestamptz not null,
    verifying_since timestamptz not null,
    patience_since timestamptz not null,
    ended_at timestamptz,
    ended_as text check (ended_as in ('promoted', 'verdict', 'person', 'policy', 'timeout', 'endpoint')),
    keep_until timestamptz,
    check ((state in ('promoted', 'rolled_back', 'aborted')) = (ended_at is not null)),
    check ((ended_at is null) = (ended_as is null))
  )`,
  // Two rollouts of one endpoint never: the database itself refuses the second one.
  'create unique index rollouts_active on rollouts (endpoint) where ended_at is null',
  'create index rollouts_endpoint on rollouts (endpoint, started_at desc, id)',
  'create index rollouts_started on rollouts (started_at desc, id)',
  'create index rollouts_kept on rollouts (endpoint) where keep_until is not null',
  `create table rollout_events (
    id bigint generated always as identity primary key,
    rollout_id uuid not null references rollouts on delete cascade,
    at timestamptz not null,
    type text not null,
    actor text not null,
    message text not null,
    decision jsonb,
    input jsonb
  )`,
  'create index rollout_events_rollout on rollout_events (rollout_id, id)',
];

/** Moves of an endpoint's traffic from a stable deployment to a candidate, and each decision with what it looked at. */
export class AddRollouts1790000000700 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query('drop table rollout_events, rollouts');
  }
}
