import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keys, the audit log, the feed of events and answers kept for repeated requests.
 *
 * Audit rows and events get their number (and audit rows their hash) when their transaction commits: then numbers go
 * up in the order of commits, so that a reader who saw number n never misses a smaller one, and the lock that
 * serialises them is held for the commit only.
 */
export class AddAccess1790000000400 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await this.addKeys(db);
    await db.query(`
      create table ledger_heads (
        ledger text primary key,
        position bigint not null,
        hash text not null
      )`);
    await db.query(`insert into ledger_heads values ('audit', 0, repeat('0', 64)), ('outbox', 0, '')`);
    await this.addAudit(db);
    await this.addOutbox(db);
    await db.query(`
      create table idempotency_keys (
        actor text not null,
        key text not null,
        request_hash text not null,
        ticket uuid not null,
        state text not null check (state in ('running', 'done')),
        status integer,
        answer json,
        expires_at timestamptz(3) not null,
        primary key (actor, key),
        check ((state = 'done') = (status is not null))
      )`);
    await db.query('create index idempotency_keys_expiry on idempotency_keys (expires_at)');
  }

  async down(db: QueryRunner): Promise<void> {
    for (const table of ['idempotency_keys', 'outbox', 'audit_log', 'ledger_heads', 'join_keys', 'api_keys'])
      await db.query(`drop table ${table}`);
    for (const name of ['seal_audit_row', 'refuse_audit_change', 'number_event'])
      await db.query(`drop function ${name}()`);
  }

  private async addKeys(db: QueryRunner): Promise<void> {
    await db.query(`
      create table api_keys (
        id text primary key,
        name text not null check (name <> ''),
        role text not null check (role in ('inference', 'viewer', 'publisher', 'operator', 'admin')),
        projects text[] not null default '{}',
        endpoints text[] not null default '{}',
        hash text not null unique check (hash ~ '^[0-9a-f]{64}$'),
        created_at timestamptz(3) not null default now(),
        created_by text not null,
        expires_at timestamptz(3),
        revoked_at timestamptz(3),
        last_used_at timestamptz(3)
      )`);
    await db.query('create index api_keys_in_order on api_keys (created_at, id)');
    await db.query(`
      create table join_keys (
        id text primary key,
        name text not null check (name <> ''),
        joins text not null check (joins in ('server', 'router')),
        pool text check ((joins = 'server') = (pool is not null)),
        hash text not null unique check (hash ~ '^[0-9a-f]{64}$'),
        created_at timestamptz(3) not null default now(),
        created_by text not null,
        revoked_at timestamptz(3)
      )`);
  }

  private async addAudit(db: QueryRunner): Promise<void> {
    await db.query(`
      create table audit_log (
        entry bigint generated always as identity primary key,
        id bigint unique,
        at timestamptz(3) not null default now(),
        actor text not null,
        action text not null,
        subject text not null,
        detail json not null,
        previous_hash text,
        hash text
      )`);
    await db.query(`
      create function seal_audit_row() returns trigger language plpgsql as $$
      declare
        head ledger_heads;
        sealed text;
      begin
        select * into head from ledger_heads where ledger = 'audit' for update;
        head.position := head.position + 1;
        sealed := encode(sha256(convert_to(json_build_array(
          head.hash, head.position::text, to_char(new.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          new.actor, new.action, new.subject, new.detail::text)::text, 'UTF8')), 'hex');
        update audit_log set id = head.position, previous_hash = head.hash, hash = sealed where entry = new.entry;
        update ledger_heads set position = head.position, hash = sealed where ledger = 'audit';
        return null;
      end $$`);
    await db.query(`
      create constraint trigger audit_log_seal after insert on audit_log
      deferrable initially deferred for each row execute function seal_audit_row()`);
    await db.query(`
      create function refuse_audit_change() returns trigger language plpgsql as $$
      begin
        raise exception 'rows of audit_log are never changed';
      end $$`);
    await db.query(`
      create trigger audit_log_frozen before update or delete on audit_log
      for each row when (old.hash is not null) execute function refuse_audit_change()`);
    await db.query(`
      create trigger audit_log_kept before truncate on audit_log execute function refuse_audit_change()`);
  }

  private async addOutbox(db: QueryRunner): Promise<void> {
    await db.query(`
      create table outbox (
        entry bigint generated always as identity primary key,
        id bigint unique,
        at timestamptz(3) not null default now(),
        type text not null,
        subject text not null,
        data json not null
      )`);
    await db.query('create index outbox_age on outbox (at)');
    await db.query(`
      create function number_event() returns trigger language plpgsql as $$
      declare
        next bigint;
      begin
        -- always in this order, so that two commits never wait for each other
        perform 1 from ledger_heads where ledger = 'audit' for update;
        update ledger_heads set position = position + 1 where ledger = 'outbox' returning position into next;
        update outbox set id = next where entry = new.entry;
        perform pg_notify('perch_events', next::text);
        return null;
      end $$`);
    await db.query(`
      create constraint trigger outbox_number after insert on outbox
      deferrable initially deferred for each row execute function number_event()`);
  }
}
