import type { MigrationInterface, QueryRunner } from 'typeorm';

const rollout = 'rollout_id uuid not null references rollouts on delete cascade';
const arm = `arm text not null check (arm in ('stable', 'candidate'))`;

const up = [
  // No reference to routers: one that is forgotten leaves its evidence, and when it enrols again under another id it goes
  // on with the counts of its boot, which must not add up to those told before.
  // fillfactor: rows are rewritten each second.
  `create table arm_counts (
    ${rollout},
    epoch integer not null,
    router_id uuid not null,
    boot_id text not null,
    worker integer not null,
    counts jsonb not null,
    turn integer not null default 1,
    at timestamptz not null default now(),
    primary key (rollout_id, epoch, boot_id, worker)
  ) with (fillfactor = 70)`,
  // Sets are joined over all routers, in the database itself: whoever told of a bucket does not matter.
  `create table arm_buckets (
    ${rollout},
    epoch integer not null,
    ${arm},
    phase text not null check (phase in ('ended', 'closed')),
    metric text not null,
    seen bit(10000) not null,
    hit bit(10000) not null,
    primary key (rollout_id, epoch, arm, phase, metric)
  )`,
  `create table feedback_keys (
    rollout_id uuid primary key references rollouts on delete cascade,
    key bytea not null
  )`,
  `create table feedback_given (
    ${rollout},
    request_id text not null,
    flag text not null,
    expires_at timestamptz not null,
    primary key (rollout_id, request_id, flag)
  )`,
  'create index feedback_given_expires on feedback_given (expires_at)',
  `create table feedback_counts (
    ${rollout},
    epoch integer not null,
    ${arm},
    flag text not null,
    cohort timestamptz not null,
    given bigint not null,
    raised bigint not null,
    given_buckets bit(10000) not null,
    raised_buckets bit(10000) not null,
    primary key (rollout_id, epoch, arm, flag, cohort)
  )`,
  // How many replies there were by then: what came later is too young to be judged by feedback.
  `create table reply_marks (
    ${rollout},
    epoch integer not null,
    at timestamptz not null,
    stable bigint not null,
    candidate bigint not null,
    stable_buckets bit(10000) not null,
    candidate_buckets bit(10000) not null,
    primary key (rollout_id, epoch, at)
  )`,
  `create table provided_counts (
    ${rollout},
    metric text not null,
    body jsonb not null,
    read_at timestamptz,
    fault text,
    primary key (rollout_id, metric)
  )`,
  `create table traffic_marks (
    router_id uuid not null references routers on delete cascade,
    endpoint text not null,
    version integer not null,
    boot_id text not null,
    requests bigint not null,
    errors bigint not null,
    latency bigint[] not null,
    primary key (router_id, endpoint, version)
  ) with (fillfactor = 70)`,
  `create table traffic_looks (
    endpoint text primary key,
    at timestamptz not null
  )`,
  `create table traffic_hours (
    endpoint text not null,
    version integer not null,
    hour timestamptz not null,
    requests bigint not null,
    errors bigint not null,
    latency bigint[] not null,
    primary key (endpoint, version, hour)
  ) with (fillfactor = 70)`,
  `create table traffic_peaks (
    endpoint text not null,
    hour timestamptz not null,
    per_minute double precision not null,
    primary key (endpoint, hour)
  ) with (fillfactor = 70)`,
];

/** What routers counted for rollouts, what came back later about replies, and what endpoints were like the day before. */
export class AddEvidence1790000000710 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    for (const statement of up) await db.query(statement);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`drop table traffic_peaks, traffic_hours, traffic_looks, traffic_marks, provided_counts, reply_marks,
      feedback_counts, feedback_given, feedback_keys, arm_buckets, arm_counts`);
  }
}
