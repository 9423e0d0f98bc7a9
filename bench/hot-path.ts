// The cost of each step of a hit in ns, so that a regression is seen where it happens: `node bench/hot-path.ts`. One
// process, no kernel and no network: the same bytes go through Node's own HTTP server twice, once to a handler that
// writes a ready buffer and once to the API listener. The rows of bench/main.ts measure over real sockets.

import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { fastify } from 'fastify'
import { measure } from 'mitata'
import { createRenderedWeather } from '../src/api/rendered-weather.ts'
import { createPlaces } from '../src/api/weather-endpoints.ts'
import { putText } from '../src/common/flat-text.ts'
import { createAccessLog } from '../src/telemetry/access-log.ts'
import { setUp } from './hot-path/set-up.ts'
import { openWire } from './hot-path/wire.ts'

// The cost of each step when this was written, as a multiple of what Node itself spends on the same request in the same run. It is
// shown beside the measured one and judges nothing: processes of one build differ by a third. Whether a change costs something is
// for `npm run bench:builds`, which compares fresh processes of two builds in turn.
const before: Readonly<Record<string, number>> = {
  'a hit, whole': 1.65,
  'authentication: the key, known': 0.022,
  'a unit, 64 at once, embedded store': 0.065,
  'a line of the access log': 0.175,
}
const connections = 64
const rounds = 24
const roundsWhenBrief = 12
const node = 'Node alone, whole'

const usage = `Usage: node bench/hot-path.ts [options]

Measures the steps of a hit in ns, without a network, beside Node's own HTTP server with a ready body.

  --brief  only the steps that were measured before, in half of the rounds
  --json   the figures as JSON
  --help   this text
`

const path = '/api/v1/weather/district/3026?lang=en'

/** What runs, and how often a run does it. */
type Step = readonly [name: string, run: () => unknown, times: number]

type Cost = {
  readonly name: string
  readonly ns: number
  /** Of Node's own cost of a request. */
  readonly ofNode: number
  /** What it was when the figures of this file were taken. */
  readonly before?: number
}

/** @param isBrief only the steps that were measured before, in fewer rounds */
const measureSteps = async (isBrief = false): Promise<Cost[]> => {
  const parts = await setUp()
  const { api, key, authenticate, client, quota, answers, catalogue, calendar, observer, metrics, clock } =
    parts
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nhost: bench\r\nx-api-key: ${key}\r\n\r\n`)
  await api.app.ready()
  const hits = openWire(api.server, connections)
  await hits.sendOnAll(request)
  const answer = hits.lastAnswer()
  const body = answer.subarray(answer.indexOf('\r\n\r\n') + 4)
  if (!answer.toString('latin1', 0, 15).includes(' 200 ')) throw new Error(`a hit answered ${answer}`)
  JSON.parse(body.toString())

  const bare = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
  const raw = openWire(bare, connections)
  const app = fastify()
  // The headers of the hit, without those that Node sets.
  const lines = answer.toString('latin1', 0, answer.indexOf('\r\n\r\n')).split('\r\n').slice(1)
  const own = lines.filter(line => !/^(date|connection|keep-alive):/.test(line))
  const headers = Object.fromEntries(own.map(line => line.split(/: (.*)/s).slice(0, 2)))
  app.get('/api/v1/weather/:type/:id', (_, reply) => reply.headers(headers).send(body))
  await app.ready()
  const framework = openWire(app.server, connections)

  const places = createPlaces(catalogue, answers.cellAt)
  const rendered = createRenderedWeather(answers, calendar.zone)
  const place = places('district', '3026')
  const asked = { requestId: 'abcdefghijkl-1', method: 'GET', url: path, endpoint: 'weather' } as const
  const asker = { keyId: client.keyId, tier: client.tier, address: '203.0.113.7' }
  const over = {
    connection: { number: 12 },
    connectionRequest: 345,
    httpVersion: '1.1',
    bytes: 4321,
    encoding: 'br',
  } as const
  const got = { status: 200, ms: 0.123, cache: 'hit; ttl=4000; detail=memory', cell: '23.8,90.4' } as const
  const none = { cost: undefined, reason: undefined, notModified: undefined, traceId: undefined }
  const access = { arrivedAt: clock.now(), ...asked, ...asker, ...over, ...got, ...none }
  const line = Buffer.alloc(4_096)
  let used = 0
  const write = (part: string): void => {
    used = putText(line, used, part)
  }
  const copy = (part: Uint8Array): void => {
    line.set(part, used)
    used += part.length
  }
  const end = (part: Uint8Array): void => {
    copy(part)
    used = 0
  }
  const accessLog = createAccessLog(1, { write, copy, end }, clock)
  const units = Array.from({ length: connections })

  const takeAll = (): Promise<unknown> =>
    Promise.all(
      units.map(() => new Promise<void>(resolve => quota.consume(client, clock.now(), 1, () => resolve()))),
    )
  const countOne = (): void => {
    observer.responded(access.endpoint, access.status, access.ms / 1000)
    observer.used(access)
  }
  const weatherOf = () => rendered.represent(place.cell, undefined, place.part('en'), '')
  const countRead = () => metrics.cacheRead('hit', 'memory', 2_400_000)
  const steps: Step[] = [
    [node, () => raw.sendOnAll(request), connections],
    ['Fastify alone, whole', () => framework.sendOnAll(request), connections],
    ['a hit, whole', () => hits.sendOnAll(request), connections],
    ['authentication: the key, known', () => authenticate(key), 1],
    [`a unit, ${connections} at once, embedded store`, takeAll, connections],
    ['which place', () => places('district', '3026').part('en'), 1],
    ['the weather of its cell, read and rendered before', weatherOf, 1],
    ['counts and times of an answer', countOne, 1],
    ['counts of a read, and the age of what was served', countRead, 1],
    ['a line of the access log', () => accessLog(access), 1],
  ]

  const best = new Map<string, number>()
  const wanted = steps.filter(([name]) => !isBrief || name === node || name in before)
  const roundCount = isBrief ? roundsWhenBrief : rounds
  for (let round = 0; round < roundCount; round++) {
    for (const [name, run, times] of wanted) {
      const { min, p50 } = await measure(run, { min_cpu_time: 60e6, min_samples: 8, inner_gc: false })
      // The fastest sample of a batch of calls, or the median where one call is long enough to be a sample.
      const ns = (times > 1 ? p50 : min) / times
      best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, ns))
    }
  }
  for (const wire of [hits, raw, framework]) wire.close()
  await parts.close()

  const alone = best.get(node) ?? Number.NaN
  return [...best].map(([name, ns]) => ({
    name,
    ns: Math.round(ns),
    ofNode: ns / alone,
    ...(before[name] !== undefined && { before: before[name] }),
  }))
}

const lineOf = ({ name, ns, ofNode, before: was }: Cost): string =>
  `${name.padEnd(44)} ${String(ns).padStart(7)} ns  ${ofNode.toFixed(3)} of Node${was === undefined ? '' : `, before ${was.toFixed(3)}`}\n`

const main = async (): Promise<void> => {
  const flag = { type: 'boolean' } as const
  const { values: given } = parseArgs({ options: { brief: flag, json: flag, help: flag } })
  if (given.help) {
    process.stdout.write(usage)
    return
  }
  const costs = await measureSteps(given.brief)
  process.stdout.write(given.json ? `${JSON.stringify(costs)}\n` : costs.map(lineOf).join(''))
}

await main()
