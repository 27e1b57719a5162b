import { Column, Entity, PrimaryColumn, type ValueTransformer } from 'typeorm';

/** Postgres' bigint comes as text; sizes stay far below 2^53. */
export const sizeColumn: ValueTransformer = { to: (value: number) => value, from: (value: string) => Number(value) };

export type BlobState = 'unverified' | 'verified' | 'deleting';

/** One object of the store that is, or is to become, the bytes named by `sha256`. Several may name the same bytes. */
@Entity('blobs')
export class BlobEntity {
  @PrimaryColumn('uuid') id!: string;
  @Column('text') sha256!: string;
  @Column('bigint', { name: 'size_bytes', transformer: sizeColumn }) sizeBytes!: number;
  @Column('text', { name: 'object_key' }) objectKey!: string;
  @Column('text') state!: BlobState;
  /** Id of the store's multipart upload while one is under way. */
  @Column('text', { name: 'multipart_id', nullable: true }) multipartId!: string | null;
  @Column('timestamptz', { name: 'created_at' }) createdAt!: Date;
}
