import { z } from 'zod';

export const severities = ['ok', 'warning', 'error'] as const;

/** What was looked at, what is the matter, and what to do about it. */
export const finding = z
  .object({
    severity: z.enum(severities),
    what: z.string(),
    message: z.string(),
    whatToDo: z.string().nullable(),
  })
  .meta({ id: 'Finding' });
export type Finding = z.infer<typeof finding>;

/** `GET /doctor`: the whole installation, as the control plane sees it. `now`: its clock. */
export const diagnosis = z
  .object({ healthy: z.boolean(), version: z.string(), now: z.string(), findings: z.array(finding) })
  .meta({ id: 'Diagnosis' });
export type Diagnosis = z.infer<typeof diagnosis>;
