import type { Role } from '@perch/contracts';
import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

@Entity('api_keys')
export class ApiKeyEntity {
  @PrimaryColumn('text') id!: string;
  @Column('text') name!: string;
  @Column('text') role!: Role;
  @Column('text', { array: true }) projects!: string[];
  @Column('text', { array: true }) endpoints!: string[];
  /** SHA-256 of the secret, hex. */
  @Column('text') hash!: string;
  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' }) createdAt!: Date;
  @Column('text', { name: 'created_by' }) createdBy!: string;
  @Column('timestamptz', { name: 'expires_at', nullable: true }) expiresAt!: Date | null;
  @Column('timestamptz', { name: 'revoked_at', nullable: true }) revokedAt!: Date | null;
  @Column('timestamptz', { name: 'last_used_at', nullable: true }) lastUsedAt!: Date | null;
}

/** What a server or a router enrols with. */
@Entity('join_keys')
export class JoinKeyEntity {
  @PrimaryColumn('text') id!: string;
  @Column('text') name!: string;
  @Column('text') joins!: 'server' | 'router';
  @Column('text', { nullable: true }) pool!: string | null;
  @Column('text') hash!: string;
  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' }) createdAt!: Date;
  @Column('text', { name: 'created_by' }) createdBy!: string;
  @Column('timestamptz', { name: 'revoked_at', nullable: true }) revokedAt!: Date | null;
}
