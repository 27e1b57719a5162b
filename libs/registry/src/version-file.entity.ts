import { Column, Entity, PrimaryColumn } from 'typeorm';
import { sizeColumn } from './blob.entity.ts';

/** One line of a manifest, and at the same time the reference that keeps its blob. */
@Entity('version_files')
export class VersionFileEntity {
  @PrimaryColumn('uuid', { name: 'version_id' }) versionId!: string;
  @PrimaryColumn('text') path!: string;
  @Column('text') sha256!: string;
  @Column('bigint', { name: 'size_bytes', transformer: sizeColumn }) sizeBytes!: number;
  @Column('uuid', { name: 'blob_id' }) blobId!: string;
}
