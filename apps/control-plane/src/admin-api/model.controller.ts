import { Controller, Get, Param, Query } from '@nestjs/common';
import { type Actor, type ListModels, listModels, model, modelName, paged, projectName } from '@perch/contracts';
import { RegistryService } from '@perch/registry';
import { Allow, Answers, By } from './http.ts';

@Allow('viewer')
@Controller('api/v1/models')
export class ModelController {
  constructor(private readonly registry: RegistryService) {}

  @Get()
  @Answers(paged(model), 'List models, searched by name, tag and metadata')
  list(@By() actor: Actor, @Query({ schema: listModels }) query: ListModels) {
    return this.registry.listModels(actor, query);
  }

  @Get(':project/:name')
  @Answers(model, 'One model')
  get(@Param('project', { schema: projectName }) project: string, @Param('name', { schema: modelName }) name: string) {
    return this.registry.getModel(project, name);
  }
}
