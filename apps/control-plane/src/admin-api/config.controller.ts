import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import {
  AppError,
  type ConfigFacts,
  type ConfigsRead,
  configsRead,
  type ReadConfigs,
  readConfigs,
} from '@perch/contracts';
import type { ConfigSight } from '@perch/endpoints';
import { type ModelConfig, parseModelConfig } from '@perch/triton/control';
import { configTexts } from '../config-text.source.ts';
import { Allow, Answers } from './http.ts';

/** Texts of `config.pbtxt`, read for callers that have no parser of their own. Nothing is kept. */
@Allow('publisher')
@Controller('api/v1/configs')
export class ConfigController {
  @Post('read')
  @HttpCode(200)
  @Answers(configsRead, 'What texts of config.pbtxt say, as Triton reads them')
  read(@Body({ schema: readConfigs }) { texts }: ReadConfigs): ConfigsRead {
    return { configs: Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, readText(name, text)])) };
  }
}

function readText(name: string, text: string): ConfigsRead['configs'][string] {
  try {
    return { facts: factsOf(parseModelConfig(text, name), configTexts.read(text, name)), fault: null };
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid') return { facts: null, fault: error.message };
    throw error;
  }
}

const factsOf = (config: ModelConfig, { steps, versionPolicy }: ConfigSight): ConfigFacts => ({
  name: config.name || null,
  platform: config.platform || null,
  backend: config.backend || null,
  steps: steps ?? null,
  versionPolicy: versionPolicy ?? null,
  parameters: Object.fromEntries(
    Object.entries(config.parameters ?? {}).map(([key, value]) => [key, value.string_value ?? '']),
  ),
});
