import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A deployment's body lists its ways to run instead of naming the only one. */
export class AddVariants1790000000500 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`update deployments set body = (body - '{identity,engine,files}'::text[]) || jsonb_build_object('variants',
      jsonb_build_array(jsonb_build_object(
        'tritonModel', triton_model,
        'model', jsonb_build_object('engine', body -> 'engine', 'files', body -> 'files', 'digest', body -> 'identity'),
        'needs', '[]'::jsonb,
        'requires', jsonb_build_object('backend', body #> '{engine,backend}', 'gpu', false, 'tensorrt', null, 'onnx', null,
          'memoryBytes', null))))
      where body ? 'engine'`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`update deployments set body = (body - 'variants') || jsonb_build_object(
        'identity', body #> '{variants,0,model,digest}', 'engine', body #> '{variants,0,model,engine}',
        'files', body #> '{variants,0,model,files}')
      where body ? 'variants'`);
  }
}
