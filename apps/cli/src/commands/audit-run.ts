import { AppError, type AuditCheck, type AuditRow, type Page } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { type Shown, said, shownList } from '../output.ts';
import type { Run } from '../verb.ts';

async function verify(client: AdminClient): Promise<Shown> {
  const result = await client.call<AuditCheck>('/audit/verify', { timeoutMs: 10 * 60_000 });
  if (result.intact) return said(result, `The audit log is whole: ${result.rows} rows, each sealed by the next.`);
  const sentence = `The audit log was tampered with: row ${result.fault?.id ?? '?'}: ${result.fault?.reason ?? 'it does not fit its seal'}`;
  return { ...said(result, sentence), exitCode: 1 };
}

export const run: Run = async (invocation, _args, options) => {
  const client = await invocation.admin();
  if (options['verify']) return verify(client);
  const limit = Number(options['limit']);
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    throw new AppError('invalid', `--limit: wants 1 to 500, got "${options['limit']}"`);
  const query = { limit, subject: options['subject'] };
  const { items } = await client.call<Page<AuditRow>>('/audit', { query });
  return shownList(
    items,
    [
      ['id', ({ id }) => id],
      ['when', ({ at }) => at],
      ['actor', ({ actor }) => actor],
      ['action', ({ action }) => action],
      ['subject', ({ subject }) => subject],
      ['detail', ({ detail }) => (Object.keys(detail).length > 0 ? JSON.stringify(detail).slice(0, 80) : undefined)],
    ],
    'No rows.',
  );
};
