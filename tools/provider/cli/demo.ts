// `abohawa demo`: runs a simulated provider and a gateway with a temporary embedded store, and prints a key of each tier
// and a curl command for each endpoint.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { administerWith } from 'abohawa/cli/administer.ts'
import { interruption } from 'abohawa/command-line/interruption.ts'
import { indented, tableOf } from 'abohawa/command-line/tables.ts'
import type { AddTopCommand } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { apiPrefix } from 'abohawa/common/endpoints.ts'
import { safeText } from 'abohawa/common/outside-text.ts'
import type { Gateway } from 'abohawa/gateway.ts'
import type { IssuedKey } from 'abohawa/keys/administration.ts'
import { serviceUrl } from 'abohawa/provider/open-meteo/terms.ts'

export const addCommand: AddTopCommand = (program, add, summary) =>
  add<{ upstream?: string }>(program, 'demo', {
    summary,
    example: `demo --upstream ${serviceUrl}`,
    setUp: command =>
      command.option(
        '--upstream <url>',
        `use this provider instead of the simulated one, such as ${serviceUrl}`,
      ),
    run: async (terminal, { upstream }) => {
      if (upstream !== undefined && !URL.canParse(upstream))
        throw new UsageError(`--upstream is ${safeText(upstream, 60)}; allowed: a URL such as ${serviceUrl}`)
      const { startGateway } = await import('abohawa/gateway.ts')
      const { openLog } = await import('abohawa/telemetry/log.ts')
      const { startSimulator } = await import('../simulator.ts')
      // A closed terminal sends SIGHUP; the folder must be removed then too.
      const stopped = interruption('SIGHUP')
      await using opened = new AsyncDisposableStack()
      const folder = await mkdtemp(join(tmpdir(), 'abohawa-demo-'))
      opened.defer(() => rm(folder, { recursive: true, force: true }))
      const simulator = upstream === undefined ? await startSimulator({ clock: terminal.clock }) : undefined
      opened.defer(() => simulator?.close())
      const { server, ops } = terminal.config()
      const config = terminal.config({
        ABOHAWA_PROVIDER__BASE_URL: upstream ?? simulator?.url,
        // The simulated provider has no limits.
        ...(upstream === undefined && unlimited),
        ABOHAWA_REDIS__URL: '',
        ABOHAWA_REDIS__MODE: 'single',
        ABOHAWA_STORE__PATH: join(folder, 'demo.db'),
        ABOHAWA_SERVER__HOST: '127.0.0.1',
        ABOHAWA_SERVER__PORT: String(await freePort(server.port)),
        ABOHAWA_SERVER__DRAIN_FOR: '0s',
        ABOHAWA_OPS__PORT: String(await freePort(ops.port)),
        ABOHAWA_LOG__LEVEL: 'warn',
      })
      const { log, lines, dropped, flush } = openLog(config.log.level)
      opened.defer(flush)
      const gateway = await startGateway(config, { clock: terminal.clock, log, lines, dropped })
      opened.defer(gateway.close)
      const keys: IssuedKey[] = []
      await administerWith(config, terminal.clock, async administration => {
        for (const tier of Object.keys(config.quota.tiers))
          keys.push(await administration.createKey('Demo', tier))
      })
      const { apiUrl, opsUrl } = gateway
      const provider = config.provider.baseUrl
      const examples = curlLines(apiUrl, keys.at(-1)?.key ?? '')
      terminal.show(
        { apiUrl, opsUrl, provider, keys, curl: examples.map(([, line]) => line) },
        welcome(gateway, provider, keys, examples),
      )
      await stopped
      terminal.remark('Stopping.')
    },
  })

const unlimited = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
}

// Dhaka, whose ids are in the catalogue of the product.
const curlLines = (apiUrl: string, key: string): [string, string][] => {
  const curl = (path: string) => `curl -s -H 'x-api-key: ${key}' '${apiUrl}${apiPrefix}${path}'`
  return [
    ['Weather of a place', curl('/weather/district/3026?lang=en')],
    ['Weather at a point', curl('/weather/coords/23.81/90.41')],
    ['Daily forecast', curl('/forecast/district/3026?days=3')],
    ['List and search', curl('/locations?type=upazila&q=savar')],
    ['One place', curl('/locations/district/3026')],
  ]
}

const welcome = (
  { apiUrl, opsUrl }: Gateway,
  provider: string,
  keys: readonly IssuedKey[],
  examples: readonly (readonly [title: string, line: string])[],
): string => {
  const table = tableOf(
    ['tier', 'a day', 'key'],
    keys.map(({ tier, limit, key }) => [tier, String(limit), key]),
  )
  return `Abohawa is ready.

  API        ${apiUrl}${apiPrefix}
  Reference  ${apiUrl}/docs
  Dashboard  ${opsUrl}/
  Status     npm run -s abohawa -- status --gateway ${opsUrl}
  Ops        ${opsUrl}/readyz and /metrics
  Provider   ${provider}

A key of each tier:
${indented(table)}

Paste any of these:
${examples.map(([title, line]) => `  # ${title}\n  ${line}`).join('\n')}
  # What is cached of it, and for how long
  npm run -s abohawa -- cache show district/3026 --gateway ${opsUrl}

Ctrl-C stops it.`
}

/** The port, or 0 when it is in use. */
const freePort = (port: number): Promise<number> =>
  new Promise(resolve => {
    const probe = createServer()
    probe.once('error', () => resolve(0))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(port)))
  })
