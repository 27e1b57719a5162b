import type { Options } from '@swc/core';

export const swcSettings: Pick<Options, 'jsc' | 'module'>;
