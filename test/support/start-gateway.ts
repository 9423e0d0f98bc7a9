// A running gateway for a test: real listeners on free ports, by default an embedded store in its own folder, a small
// catalogue, a clock that the test moves, a key of each tier, and functions that send requests.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { createCalendar } from '../../src/common/calendar.ts'
import type { Clock } from '../../src/common/clock.ts'
import { variableOf } from '../../src/config/environment.ts'
import { readConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { type Gateway, startGateway as start } from '../../src/gateway.ts'
import { createAdministration } from '../../src/keys/administration.ts'
import { tiersOf } from '../../src/keys/test-keys.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { assertConforming } from './conforming.ts'
import { withConstants } from './constants.ts'
import { keyForm, noBudget, onFreePorts } from './gateway-env.ts'
import { manualClock } from './manual-clock.ts'
import { metricOf } from './metric.ts'
import type { Teardown } from './teardown.ts'
import { usualCatalogue } from './usual-catalogue.ts'

export type Answer = {
  status: number
  headers: Record<string, string>
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any
}

export type RequestOptions = { key?: string | null; method?: string; headers?: Record<string, string> }

export type TestGateway = Gateway & {
  config: Config
  keys: Record<string, string>
  keyIds: Record<string, string>
  administration: ReturnType<typeof createAdministration>
  logged: Record<string, unknown>[]
  /** Sends a request to the API, with a path below its prefix and by default with an enterprise key. */
  get(path: string, options?: RequestOptions): Promise<Answer>
  /** Gives settings by their paths and has the configuration read again; an empty text is null. */
  set(settings: Record<string, string>): ReturnType<Gateway['reloadConfig']>
  /** A metric of the ops listener, with its labels; undefined while there is none. */
  metric(name: string): Promise<number | undefined>
}

export type GatewaySetting = {
  providerUrl: string
  clock?: Clock
  env?: Record<string, string>
  /** Opens the gateway's store; the product's own where absent. */
  open?: typeof openStore
}

export const startGateway = async (
  t: Teardown,
  { providerUrl, clock = manualClock(), env = {}, open = openStore }: GatewaySetting,
): Promise<TestGateway> => {
  // Not the test's own folder, which the test may use for its own files.
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-test-'))
  const settings: Record<string, string> = {
    ...onFreePorts,
    ABOHAWA_STORE__PATH: join(folder, 'store.db'),
    ABOHAWA_CATALOGUE__PATH: usualCatalogue,
    ABOHAWA_PROVIDER__BASE_URL: providerUrl,
    ABOHAWA_TEST_PROVIDER__RETRY_DELAY: '1ms',
    // A busy machine must not look like a provider that is away. Tests of those that hang give less.
    ABOHAWA_TEST_PROVIDER__CONNECT_TIMEOUT: '30s',
    ABOHAWA_PROVIDER__TIMEOUT: '30s',
    ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: '30s',
    // By age, which a test that moves the clock can count on; runs are for the tests of runs.
    ABOHAWA_CACHE__FRESHNESS: 'age',
    ...noBudget,
    ...env,
  }
  const read = () => withConstants(settings, () => readConfig({ files: [], env: settings }))
  const { config } = read()
  const logged: Record<string, unknown>[] = []
  let shown: string | undefined
  const write = (line: string): void => {
    if (keyForm.test(line)) shown = line
    logged.push(JSON.parse(line))
  }
  let begun = ''
  const lines = {
    write: (part: string): void => {
      begun += part
    },
    copy: (part: Uint8Array): void => lines.write(Buffer.from(part).toString()),
    end: (part: Uint8Array): void => {
      lines.copy(part)
      write(begun)
      begun = ''
    },
  }
  const log = createLog('info', { write })
  const gateway = await start(config, {
    ...{ clock, log, lines, dropped: () => 0, open, source: { read, files: [] } },
  })

  const store = await openStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= gateway.close()
    return closed
  }
  t.teardown(async () => {
    await close()
    await store.close()
    await rm(folder, { recursive: true })
    if (shown) throw new Error(`a gateway wrote a key: ${shown.slice(0, 500)}`)
  })
  const { tiers, timeZone } = config.quota
  const administration = createAdministration({
    ...{ store, tiers: tiersOf(config.quota), calendar: createCalendar(timeZone), clock },
  })
  const keys: Record<string, string> = {}
  const keyIds: Record<string, string> = {}
  for (const tier of Object.keys(tiers)) {
    const { key, id } = await administration.createKey('Test', tier)
    keys[tier] = key
    keyIds[tier] = id
  }

  return {
    ...{ ...gateway, close, config, keys, keyIds, administration, logged },
    set: changed => {
      for (const [path, value] of Object.entries(changed)) settings[variableOf(path.split('.'))] = value
      return gateway.reloadConfig()
    },
    metric: name => metricOf(gateway.opsUrl, name),
    get: (path, options = {}) =>
      sendRequest(`${gateway.apiUrl}/api/v1${path}`, { key: keys.enterprise ?? '', ...options }),
  }
}

/** Sends a request to a URL over a real connection. A response of the API is held against docs/openapi.json. */
export const sendRequest = async (
  url: string,
  { key, method = 'GET', headers = {} }: RequestOptions = {},
): Promise<Answer> => {
  const sent = { ...(key ? { 'x-api-key': key } : {}), ...headers }
  const answer = await request(url, { method: method as 'GET', headers: sent })
  const { statusCode: status, headers: received } = answer
  const bytes = Buffer.from(await answer.body.arrayBuffer())
  const text = bytes.toString()
  const flat = Object.fromEntries(Object.entries(received).map(([name, value]) => [name, String(value)]))
  if (/^https?:\/\/[^/]+\/api\/v1\//.test(url) && !(method === 'OPTIONS' && status === 204))
    assertConforming({ method, url, status, headers: flat, bytes })
  const isJson = String(received['content-type']).startsWith('application/json')
  const isPlain = text !== '' && !received['content-encoding']
  return { status, headers: flat, text, body: isJson && isPlain ? JSON.parse(text) : undefined }
}
