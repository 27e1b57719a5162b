/**
 * How TypeScript becomes JavaScript, wherever it does: in builds, in tests, and where sources run as they are. Nest and
 * TypeORM need legacy decorators with metadata.
 */
export const swcSettings = {
  module: { type: 'es6' },
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
  },
};
