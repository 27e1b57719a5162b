import { Controller, Delete, Param } from '@nestjs/common';
import { type Actor, deletedModel, modelName, projectName, versionNumber } from '@perch/contracts';
import { VersionUsersService } from '@perch/endpoints';
import { DeletionService, type UsersOf } from '@perch/registry';
import { Allow, Answers, By } from './http.ts';

const InProject = () => Param('project', { schema: projectName });
const OfModel = () => Param('name', { schema: modelName });

/** Deleting what the registry holds: refused while somebody serves it. */
@Allow('publisher')
@Controller('api/v1/models/:project/:name')
export class DeletionController {
  constructor(
    private readonly deletion: DeletionService,
    private readonly users: VersionUsersService,
  ) {}

  @Delete()
  @Answers(deletedModel, 'Delete a model with all its versions; 409 names who uses it')
  deleteModel(@By() actor: Actor, @InProject() project: string, @OfModel() name: string) {
    return this.deletion.delete(actor, project, name, null, this.usersOf(null));
  }

  @Delete('versions/:number')
  @Answers(deletedModel, 'Delete a version; its number is never given again; 409 names who uses it')
  deleteVersion(
    @By() actor: Actor,
    @InProject() project: string,
    @OfModel() name: string,
    @Param('number', { schema: versionNumber }) number: number,
  ) {
    return this.deletion.delete(actor, project, name, number, this.usersOf(number));
  }

  private usersOf(number: number | null): UsersOf {
    return (tx, project, name, versions) =>
      this.users.usersOf(tx, project, name, versions, number === null ? null : [number]);
  }
}
