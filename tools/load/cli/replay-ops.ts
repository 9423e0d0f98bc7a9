// Reads the ops listener of a replay's gateway: its metrics, and its settings if they equal the command's configuration.

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
    if (opsTokenFile !== undefined) throw new UsageError('--ops-token-file requires --ops')
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
        throw new InputError(`no gateway answered at --ops ${where}: ${connectFault(cause)}`, { cause })
      })
      if (answer.status !== 200 || !answer.text.includes('process_cpu_seconds_total'))
        throw new InputError(
          `--ops must be the ops listener of a gateway, but ${where}/metrics answered ${answer.status}`,
        )
      return answer.text
    },
    /** Null where the configuration of the gateway differs from the command's. */
    settings: async (): Promise<ReplayResult['settings']> => {
      const found = await queryGateway(
        { ...asked, isNamed: false, path: '/status' },
        async () => (await import('abohawa/operate/reports/status-report.ts')).statusReport,
      )
      // Reading the metrics next reports that no gateway answered.
      if (!('report' in found)) return null
      const hash = found.report.config?.hash
      const config = terminal.config()
      if (hash !== fleetHashOf(config)) {
        terminal.remark(
          'The gateway has another configuration than this command, so the result has no settings; name its files with --config.',
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
