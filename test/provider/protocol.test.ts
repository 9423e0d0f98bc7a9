// Without it the client could depend on Open-Meteo, so that no other protocol works.

import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { namespaceOf } from '../../src/cache/entry-codec.ts'
import { dayNumber, hourMs, minuteMs } from '../../src/common/calendar.ts'
import type { ProviderOptions } from '../../src/provider/client.ts'
import { garbled, ProviderError } from '../../src/provider/errors.ts'
import type { ProviderProtocol } from '../../src/provider/protocol.ts'
import { createRunWatch } from '../../src/provider/runs.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { Cell } from '../../src/weather/cell.ts'
import { layOut, type Timeline } from '../../src/weather/timeline.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { budgetOn } from './budget-set-up.ts'
import { cellsFrom, openMeteo, providerAt } from './provider-set-up.ts'

const weightPerCell = 7

// A body such as `22,90 = 27.5`: the weather of one place, the same for a quarter-hour, an hour and a day.
const timelineOf = (body: string, cell: Cell, fetchedAt: number): Timeline => {
  const [, place, degrees] = /^(.+) = (-?[\d.]+)\n$/.exec(body) ?? []
  if (place !== cell.id) throw garbled('wrong_place', `the body is about ${place}, expected ${cell.id}`)
  const day = dayNumber(new Date(fetchedAt).toISOString().slice(0, 10))
  const timeline = layOut(
    fetchedAt,
    { start: fetchedAt, length: 1 },
    { start: fetchedAt, length: 1 },
    { start: day, length: 1 },
  )
  timeline.values.fill(Number(degrees))
  return timeline
}

const plainText: ProviderProtocol = {
  identity: 'degrees as plain text',
  maxCellsPerRequest: 1,
  weightPerCell,
  weightOfFailure: 2,
  busyPauseMs: 137,
  accept: 'text/plain',
  keyHeaders: apiKey => ({ authorization: `Plain ${apiKey}` }),
  refusalOf: (status, body, now) => {
    if (status === 402)
      return new ProviderError('provider_limited', `wait ${body}`, { retryAt: now + Number(body) })
    if (status === 418) return new ProviderError('provider_busy', 'a cup at a time')
    return new ProviderError(status === 410 ? 'provider_refused' : 'provider_failing', `${status}: ${body}`)
  },
  requestFor: cells => ({
    path: `/at/${cells.map(({ id }) => id)}`,
    maxBytes: 100,
    decode: async (body, requestedAt) => {
      let text = ''
      const utf8 = new TextDecoder()
      for await (const piece of body) text += utf8.decode(piece, { stream: true })
      return cells.map(cell => timelineOf(text, cell, requestedAt))
    },
  }),
  runs: {
    requestFor: model => ({ path: `/made-by/${model}`, maxBytes: 100 }),
    decode: text => {
      const [initialised = '', available = ''] = text.trim().split(' to ')
      const [initialisedAt, availableAt] = [Date.parse(initialised), Date.parse(available)]
      return { initialisedAt, availableAt, intervalMs: 3 * hourMs }
    },
  },
  passthrough: {
    paths: ['/at/<cell>'],
    examplePath: '/at/22,90',
    keyParameter: 'password',
    parametersOf: path =>
      path.startsWith('/at/') ? { lists: [], counts: ['hours'], dates: [], choices: [] } : undefined,
    weightOf: (_path, parameters) => weightPerCell * Number(parameters.get('hours') ?? 1),
  },
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown
const weather: Answer = ({ url = '' }, response) => {
  // In two chunks, so that the decoder meets a cut.
  response.write(`${url.split('/at/')[1]?.split('?')[0]} = 2`)
  response.end('7.5\n')
}
const answering =
  (status: number, body = ''): Answer =>
  (_request, response) =>
    response.writeHead(status).end(body)

const setUp = async (t: Test, options: Partial<ProviderOptions> = {}) => {
  const seen: IncomingMessage[] = []
  /** The responses to the next requests; weather after them. */
  const answers: Answer[] = []
  const { url } = await startScriptedProvider(t, (request, response) => {
    seen.push(request)
    ;(answers.shift() ?? weather)(request, response)
  })
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const { budget } = budgetOn(store, clock, {
    limits: { minute: null, hour: 10 * weightPerCell, day: null },
    reserve: 0,
    keyShare: 1,
    unit: plainText.weightPerCell,
    weightOfFailure: plainText.weightOfFailure,
  })
  const set = providerAt(t, url, {
    options: { retries: 0, queueForMs: 0, ...options },
    network: { apiKey: 'secret-1' },
    guard: { after: 2, halfOpenAfterMs: 60_000, halfOpenAfterAtMostMs: 60_000 },
    protocol: plainText,
    clock,
    budget,
  })
  const used = () => budget.state().windows.map(({ used }) => used)
  return { ...set, seen, answers, budget, used }
}
const [cell] = cellsFrom(22, 1) as [Cell]

t.test('each cell has a request, a timeline and a weight of its own', async t => {
  t.not(
    namespaceOf('http://provider', plainText),
    namespaceOf('http://provider', openMeteo),
    'none of another',
  )
  const { provider, requests, seen, clock, used } = await setUp(t)
  const cells = cellsFrom(22, 3)
  const timelines = await Promise.all(cells.map(cell => provider.load(cell)))
  t.strictSame(requests, Array(3).fill(['ok', 1]))
  const headers = { accept: 'text/plain', authorization: 'Plain secret-1', 'x-api-key': undefined }
  t.match(
    seen,
    cells.map(({ id }) => ({ url: `/at/${id}`, headers })),
  )
  for (const { fetchedAt, values } of timelines) {
    t.equal(fetchedAt, clock.now())
    t.ok(values.every(value => value === 27.5))
  }
  t.strictSame(used(), [3 * weightPerCell])
})

t.test('the protocol decides the meaning, the cost and the retry time of a refusal', async t => {
  const { provider, requests, answers, budget, breaker, clock, used } = await setUp(t, { retries: 1 })
  const pauses: unknown[] = []
  const { setTimeout: later } = globalThis
  const recorded = (work: () => void, ms?: number) => {
    pauses.push(ms)
    return later(work, ms)
  }
  t.intercept(globalThis, 'setTimeout', { value: recorded })
  answers.push(answering(418))
  await provider.load(cell)
  t.ok(pauses.includes(137), 'the pause is the protocol’s')
  t.equal(openMeteo.busyPauseMs, 1_000)
  t.strictSame(requests, [
    ['provider_busy', 1],
    ['ok', 1],
  ])
  t.strictSame(used(), [weightPerCell], 'who is refused for being one too many pays nothing')

  answers.push(answering(410, 'no such place'))
  await t.rejects(provider.load(cell), { code: 'provider_refused', message: '410: no such place' })
  t.strictSame(used(), [weightPerCell + 2], 'a failure weighs what the protocol says')

  answers.push(answering(402, String(2 * minuteMs)))
  await t.rejects(provider.load(cell), { code: 'provider_limited', retryAt: clock.now() + 2 * minuteMs })
  t.equal(budget.closedUntil(), clock.now() + 2 * minuteMs)
  clock.advance(2 * minuteMs)

  answers.push(answering(429), answering(429))
  await t.rejects(provider.load(cell), { code: 'provider_failing' }, 'no status has a meaning of its own')
  t.equal(breaker.state().state, 'open')
})

t.test('model runs are requested and parsed by the protocol', async t => {
  const { call, answers, seen, clock } = await setUp(t)
  answers.push(answering(200, '2026-11-21T00:00Z to 2026-11-21T05:30Z\n'))
  const watch = createRunWatch(
    { model: 'clouds', pollEveryMs: hourMs },
    {
      call,
      protocol: plainText,
      clock,
      observer: { newRun: () => {}, runsUnknown: reason => t.fail(reason), refused: why => t.fail(why) },
    },
  )
  t.teardown(watch.close)
  await watch.poll()
  t.equal(seen[0]?.url, '/made-by/clouds')
  t.match(watch.newest(), { availableAt: Date.parse('2026-11-21T05:30Z'), intervalMs: 3 * hourMs })
})
