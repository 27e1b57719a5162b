import { Controller, Get, Query } from '@nestjs/common';
import { AuditService } from '@perch/access';
import { auditCheck, auditRow, paged } from '@perch/contracts';
import { z } from 'zod';
import { Allow, Answers, pageOf, pageQuery, readNumberCursor } from './http.ts';

const auditQuery = pageQuery.extend({ subject: z.string().max(500).optional() });

@Controller('api/v1/audit')
@Allow('admin')
export class AuditController {
  constructor(private readonly audit: AuditService) {}

  @Get()
  @Answers(paged(auditRow), 'Who changed what, newest first')
  async list(@Query({ schema: auditQuery }) { cursor, limit, subject }: z.output<typeof auditQuery>) {
    const rows = await this.audit.list({ subject, before: readNumberCursor(cursor), limit: limit + 1 });
    return pageOf(rows, limit, (row) => row.id);
  }

  @Get('verify')
  @Answers(auditCheck, 'Recomputes the chain of hashes over the whole log')
  verify() {
    return this.audit.verify();
  }
}
