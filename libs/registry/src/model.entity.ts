import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';

/** One model `project/name`; its counter is the only giver of version numbers. */
@Entity('models')
@Unique(['project', 'name'])
export class ModelEntity {
  @PrimaryColumn('uuid') id!: string;
  @Column('text') project!: string;
  @Column('text') name!: string;
  /** The number that the next version gets, unless the store says that it was given before. */
  @Column('integer', { name: 'next_number' }) nextNumber!: number;
  @Column('timestamptz', { name: 'created_at' }) createdAt!: Date;
}
