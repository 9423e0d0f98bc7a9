// `abohawa doctor`: checks an installation, one line each, with a fix for each fault.

import { processesIn } from '../../command-line/quantities.ts'
import type { AddTopCommand, Terminal } from '../../command-line/terminal.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { printable, quoted } from '../../common/outside-text.ts'
import type { Check, Status } from '../../operate/doctor/check.ts'
import { type DoctorOptions, examine } from '../../operate/doctor/doctor.ts'

export const addDoctorCommand: AddTopCommand = (program, add, summary) =>
  add<{ spend: boolean; url?: string; processes: number }>(program, 'doctor', {
    summary,
    example: 'doctor --url https://weather.example.org',
    setUp: command =>
      command
        .option('--no-spend', 'skip loading one point from the provider')
        .option('--url <url>', 'check how consumers reach the gateway at this URL, through your proxy')
        .option('--processes <number>', 'number of processes of serve --processes', processesIn, 1),
    run: async (terminal, { spend, url, processes }) => {
      if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
        throw new UsageError(
          `--url must be an address such as https://weather.example.org, got ${quoted(url, 60)}`,
        )
      const checks = await checksOf(terminal, { spend, url, processes })
      const failed = checks.some(({ status }) => status === 'fail')
      terminal.show({ ok: !failed, checks }, checksText(checks))
      return failed ? 1 : 0
    },
  })

const checksOf = async (
  { clock, config }: Terminal,
  given: Pick<DoctorOptions, 'spend' | 'url' | 'processes'>,
): Promise<readonly Check[]> => {
  try {
    return await examine(config(), { clock, ...given })
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    const fault = { name: 'config', status: 'fail', fix: 'Correct that setting.' } as const
    return messageOf(error)
      .split('\n')
      .map(detail => ({ ...fault, detail }))
  }
}

const checksText = (checks: readonly Check[]): string => {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const margin = ' '.repeat('fail  '.length + width + 2)
  const lines = checks.flatMap(({ name, status, detail, fix }) => [
    `${status.padEnd(4)}  ${name.padEnd(width)}  ${printable(detail)}`,
    ...(fix === null ? [] : [`${margin}${printable(fix)}`]),
  ])
  const count = (of: Status) => checks.filter(({ status }) => status === of).length
  const skipped = count('skip')
  return [
    ...lines,
    '',
    `${count('ok')} ok, ${count('warn')} to look at, ${count('fail')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}.`,
  ].join('\n')
}
