// Reads the ops listener of a replay's gateway: the metrics, and whether the configuration of the command is the gateway's. If it
// is, the result has its differences from the defaults.

import { askGateway, checkGateway, queryGateway } from 'abohawa/command-line/gateway-query.ts'
import type { Terminal } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { redactedUrl } from 'abohawa/common/redacted-url.ts'
import { loadConfig } from 'abohawa/config/load.ts'
import { changesBetween, fleetHashOf } from 'abohawa/config/values.ts'
import { readSecret } from '../replay/key-file.ts'
import { connectFault } from '../replay/target.ts'
import type { ReplayResult } from '../report/result.ts'

const timeoutMs = 5_000

export type OpsOptions = { ops?: string; opsTokenFile?: string; allowRemote?: boolean }

/** Undefined without `--ops`. @throws UsageError */
export const createOpsReader = (
  terminal: Terminal,
  { ops, opsTokenFile, allowRemote = false }: OpsOptions,
) => {
  if (ops === undefined) {
    if (opsTokenFile !== undefined) throw new UsageError('--ops-token-file is about --ops; allowed: with it')
    return undefined
  }
  try {
    checkGateway(ops, allowRemote)
  } catch (cause) {
    throw new UsageError(messageOf(cause).replace('--gateway', '--ops'), { cause })
  }
  const address = ops.replace(/\/+$/, '')
  const where = redactedUrl(address)
  const token =
    opsTokenFile === undefined
      ? terminal.config().ops.token
      : readSecret('--ops-token-file', 'token', opsTokenFile)
  const asked = { address, token, timeoutMs, allowsRemote: allowRemote }
  return {
    /** The text of /metrics. @throws InputError when no gateway answers with it */
    metrics: async (): Promise<string> => {
      const answer = await askGateway({ ...asked, path: '/metrics' }).catch(cause => {
        throw new InputError(`--ops is ${where}, where no gateway answers: ${connectFault(cause)}`, { cause })
      })
      if (answer.status !== 200 || !answer.text.includes('process_cpu_seconds_total'))
        throw new InputError(
          `--ops is ${where}, which answered ${answer.status} to /metrics; allowed: the ops address of a gateway`,
        )
      return answer.text
    },
    /** Null where the gateway runs with another configuration than the command's. */
    settings: async (): Promise<ReplayResult['settings']> => {
      const found = await queryGateway(
        { ...asked, isNamed: false, path: '/status' },
        async () => (await import('abohawa/operate/reports/status-report.ts')).statusReport,
      )
      // The metrics are read next, and their error says that no gateway answers.
      if (!('report' in found)) return null
      const hash = found.report.config?.hash
      const config = terminal.config()
      if (hash !== fleetHashOf(config)) {
        terminal.remark(
          'The gateway runs with another configuration than this command, so the result has no settings; --config names its files.',
        )
        return null
      }
      return changesBetween(loadConfig({ files: [], env: {} }), config).map(({ path, before, after }) => ({
        path,
        value: after ?? 'not set',
        default: before ?? 'not set',
      }))
    },
  }
}
