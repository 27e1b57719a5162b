import type {
  FileFacts,
  Framework,
  ProcessingSpec,
  Signature,
  UsedModel,
  Version,
  VersionState,
} from '@perch/contracts';
import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { sizeColumn } from './blob.entity.ts';
import { ModelEntity } from './model.entity.ts';

@Entity('versions')
export class VersionEntity {
  @PrimaryColumn('uuid') id!: string;
  @ManyToOne(() => ModelEntity)
  @JoinColumn({ name: 'model_id' })
  model!: ModelEntity;
  @Column('uuid', { name: 'model_id' }) modelId!: string;
  @Column('integer') number!: number;
  @Column('text') state!: VersionState;
  @Column('text', { name: 'manifest_digest' }) manifestDigest!: string;
  @Column('bigint', { name: 'size_bytes', transformer: sizeColumn }) sizeBytes!: number;
  @Column('text', { nullable: true }) framework!: Framework | null;
  @Column('jsonb', { nullable: true }) signature!: Signature | null;
  @Column('jsonb', { nullable: true }) facts!: FileFacts | null;
  @Column('text', { array: true }) tags!: string[];
  @Column('text') description!: string;
  @Column('jsonb') metadata!: Record<string, string>;
  @Column('jsonb') lineage!: Version['lineage'];
  /** By the name that its code calls. */
  @Column('jsonb', { default: {} }) uses!: Record<string, UsedModel>;
  /** Of endpoints that do not say their own. */
  @Column('jsonb', { nullable: true }) processing!: ProcessingSpec | null;
  @Column('text') author!: string;
  @Column('timestamptz', { name: 'created_at' }) createdAt!: Date;
  @Column('timestamptz', { name: 'completed_at', nullable: true }) completedAt!: Date | null;
  /** When it was last published; stays when it is unpublished. */
  @Column('timestamptz', { name: 'published_at', nullable: true }) publishedAt!: Date | null;
  /** Until when an upload may go on; past it the sweep takes the version away. */
  @Column('timestamptz', { name: 'upload_expires_at' }) uploadExpiresAt!: Date;
  /** Deleted ones are seen by nobody but the collection of garbage; their number is never given again. */
  @Column('timestamptz', { name: 'deleted_at', nullable: true }) deletedAt!: Date | null;
}
