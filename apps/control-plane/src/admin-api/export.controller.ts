import { Controller, Get, Param, Query } from '@nestjs/common';
import { type Actor, endpointExport, endpointName, versionNumber } from '@perch/contracts';
import { ExportService } from '@perch/endpoints';
import { z } from 'zod';
import { Allow, Answers, By, requireProject } from './http.ts';

const exportQuery = z.object({ version: versionNumber.optional() });

@Allow('viewer')
@Controller('api/v1/endpoints/:endpoint/export')
export class ExportController {
  constructor(private readonly exports: ExportService) {}

  @Get()
  @Answers(endpointExport, 'The Triton repository that serves one version of the endpoint without Perch')
  describe(
    @By() actor: Actor,
    @Param('endpoint', { schema: endpointName }) name: string,
    @Query({ schema: exportQuery }) { version }: z.output<typeof exportQuery>,
  ) {
    return this.exports.describe(name, version, (project) => requireProject(actor, project));
  }
}
