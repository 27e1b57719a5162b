import { Controller, Get } from '@nestjs/common';
import { type Actor, installationStatus, whoami } from '@perch/contracts';
import { Installation } from '@perch/fleet';
import { programVersion } from '../program-version.ts';
import { Allow, Answers, By } from './http.ts';

@Controller('api/v1')
export class StatusController {
  constructor(private readonly installation: Installation) {}

  @Get('status')
  @Allow('viewer')
  @Answers(installationStatus, 'Version of the program and state of the installation')
  async status() {
    const { lineage, confirmed } = await this.installation.current();
    return { version: programVersion, lineage, confirmed };
  }

  @Get('whoami')
  @Allow('inference')
  @Answers(whoami, 'Whose key this is')
  whoami(@By() actor: Actor) {
    return actor;
  }
}
