// `abohawa demo`: runs a simulated provider and a gateway process with a temporary store, and prints a key of each tier and a curl
// command for each endpoint.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { interruption } from 'abohawa/command-line/interruption.ts'
import { indented, tableOf } from 'abohawa/command-line/tables.ts'
import type { AddTopCommand } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { apiPrefix } from 'abohawa/common/endpoints.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { safeText } from 'abohawa/common/outside-text.ts'
import { serviceUrl } from 'abohawa/protocol/terms.ts'
import { startSimulator } from '../simulator.ts'

const product = fileURLToPath(new URL('../../../bin/abohawa', import.meta.url))

type DemoKey = { readonly tier: string; readonly limit: number; readonly key: string }

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
        throw new UsageError(`--upstream must be a URL such as ${serviceUrl}, got ${safeText(upstream, 60)}`)
      // A closed terminal sends SIGHUP; the folder must still be removed.
      const stopped = interruption('SIGHUP')
      await using opened = new AsyncDisposableStack()
      const folder = await mkdtemp(join(tmpdir(), 'abohawa-demo-'))
      opened.defer(() => rm(folder, { recursive: true, force: true }))
      const simulator = upstream === undefined ? await startSimulator({ clock: terminal.clock }) : undefined
      opened.defer(() => simulator?.close())
      const { server, ops } = terminal.config()
      const settings = {
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
        ABOHAWA_LOG__FILE: '',
      }
      const { quota, provider } = terminal.config(settings)
      const env = { ...terminal.env, ...settings }
      const configArgs = terminal.given.flatMap(file => ['--config', file])
      const keys = await createKeys(folder, Object.keys(quota.tiers), configArgs, env)
      const gateway = await startGateway(configArgs, env)
      opened.defer(gateway.stop)
      const { apiUrl, opsUrl } = gateway
      const examples = curlLines(apiUrl, keys.at(-1)?.key ?? '')
      terminal.show(
        { apiUrl, opsUrl, provider: provider.baseUrl, keys, curl: examples.map(([, line]) => line) },
        welcome(gateway, provider.baseUrl, keys, examples),
      )
      await Promise.race([stopped, gateway.ended])
      terminal.remark('Stopping.')
    },
  })

const createKeys = async (
  folder: string,
  tiers: readonly string[],
  configArgs: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<DemoKey[]> => {
  const list = join(folder, 'keys.csv')
  await writeFile(
    list,
    `subscriber,tier,external_id\n${tiers.map(tier => `Demo,${tier},demo-${tier}\n`).join('')}`,
  )
  const args = ['keys', 'create', '--from', list, '--create-store', '--json', ...configArgs]
  const { stdout } = await promisify(execFile)(product, args, { env })
  return JSON.parse(stdout)
}

/** @throws InputError if the gateway ends before it serves */
const startGateway = async (configArgs: readonly string[], env: NodeJS.ProcessEnv) => {
  // By the channel the gateway learns that this process has ended, also where it was killed.
  const child = spawn(product, ['serve', '--is-child', ...configArgs], {
    env,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  const ended = exited.then(([code, signal]): never => {
    throw new InputError(`the gateway ended early, ${signal ?? `exit code ${code}`}`)
  })
  // Not always awaited.
  ended.catch(() => {})
  const stop = async (): Promise<void> => {
    child.kill()
    await exited
  }
  try {
    const urls = await Promise.race([addressesOf(child), ended])
    return { apiUrl: urls.api ?? '', opsUrl: urls.ops ?? '', ended, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The addresses of its listeners, once the API is ready. Other lines of its log are shown. */
const addressesOf = (child: ChildProcess): Promise<Readonly<Record<string, string>>> =>
  new Promise(resolve => {
    const urls: Record<string, string> = {}
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line => {
      const { msg, listener, url } = line.startsWith('{') ? JSON.parse(line) : {}
      if (msg !== 'listening') return void process.stdout.write(`${line}\n`)
      urls[listener] = url
      if (listener === 'api') resolve(urls)
    })
  })

const unlimited = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
}

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
  { apiUrl, opsUrl }: { readonly apiUrl: string; readonly opsUrl: string },
  provider: string,
  keys: readonly DemoKey[],
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
  # What is cached for it, and for how long
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
