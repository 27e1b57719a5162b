import { Body, Controller, HttpCode, Inject, Post } from '@nestjs/common';
import { AppError, type Enrol, type Enrolled, enrol } from '@perch/contracts';
import { EnrolmentService, JOIN_KEYS, type JoinKeySource } from '@perch/fleet';
import { Bearer } from './caller.ts';

@Controller('internal/v1/enrol')
export class EnrolController {
  constructor(
    private readonly enrolments: EnrolmentService,
    @Inject(JOIN_KEYS) private readonly joinKeys: JoinKeySource,
  ) {}

  @Post()
  @HttpCode(200)
  async enrol(@Bearer() joinKey: string, @Body({ schema: enrol }) body: Enrol): Promise<Enrolled> {
    const grant = await this.joinKeys.find(joinKey);
    if (!grant) throw new AppError('unauthenticated', 'unknown or revoked join key; make one with "perch key create"');
    return this.enrolments.enrol(grant, body);
  }
}
