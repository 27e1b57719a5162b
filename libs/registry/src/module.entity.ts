import type { ModuleFacts } from '@perch/contracts';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { sizeColumn } from './blob.entity.ts';

/** A processing module; until it is registered it has no number, and its upload may be given up. */
@Entity('processing_modules')
export class ModuleEntity {
  @PrimaryColumn('uuid') id!: string;
  @Column('text') name!: string;
  @Column('integer', { nullable: true }) number!: number | null;
  @Column('text') digest!: string;
  @Column('jsonb') facts!: ModuleFacts;
  @Column('text') description!: string;
  @Column('text', { name: 'created_by' }) createdBy!: string;
  @Column('timestamptz', { name: 'created_at' }) createdAt!: Date;
  @Column('timestamptz', { name: 'registered_at', nullable: true }) registeredAt!: Date | null;
  @Column('timestamptz', { name: 'upload_expires_at' }) uploadExpiresAt!: Date;
  /** Deleted ones are seen by nobody but the collection of garbage; their number is never given again. */
  @Column('timestamptz', { name: 'deleted_at', nullable: true }) deletedAt!: Date | null;
}

/** One file of a module, and at the same time the reference that keeps its blob. */
@Entity('processing_module_files')
export class ModuleFileEntity {
  @PrimaryColumn('uuid', { name: 'module_id' }) moduleId!: string;
  @PrimaryColumn('text') path!: string;
  @Column('text') sha256!: string;
  @Column('bigint', { name: 'size_bytes', transformer: sizeColumn }) sizeBytes!: number;
  @Column('uuid', { name: 'blob_id' }) blobId!: string;
}
