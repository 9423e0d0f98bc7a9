// Without it an operator's request could take budget that it does not use, and consumers would be refused.

import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Clock } from '../../src/common/clock.ts'
import { type BreakerOptions, createBreaker } from '../../src/provider/breaker.ts'
import type { Budget } from '../../src/provider/budget.ts'
import { garbled, notSent, ProviderError } from '../../src/provider/errors.ts'
import { createPassthrough } from '../../src/provider/passthrough.ts'
import type { ProviderCall } from '../../src/provider/provider-call.ts'
import type { SpendingStore } from '../../src/stores/spending-store.ts'
import { until } from '../support/until.ts'
import { budgetOn, openBudget, usedIn } from './budget-set-up.ts'
import { openMeteo } from './provider-set-up.ts'

const request = { method: 'GET', path: '/v1/forecast', headers: {}, weight: 601 } as const

const passthroughOn = (
  budget: Budget,
  clock: Clock,
  stream: ProviderCall['stream'],
  guard: Partial<BreakerOptions> = {},
) => {
  const begun = performance.now()
  const requests: string[] = []
  const details: unknown[] = []
  const breaker = createBreaker(
    { after: 1, halfOpenAfterMs: 60_000, halfOpenAfterAtMostMs: 60_000, ...guard },
    clock,
    () => {},
  )
  const passthrough = createPassthrough(() => 1_000, {
    call: { stream },
    inTurn: work => work(),
    protocol: openMeteo,
    breaker,
    budget,
    clock,
    observer: {
      request: (outcome, points, ms, reason) => {
        requests.push(outcome)
        details.push([points, ms >= 0 && ms <= performance.now() - begun, reason])
      },
    },
  })
  /** What the caller reads of the answer; the rest is over when the request is reported. */
  const ask = async (weight: number) => {
    const before = requests.length
    const { status, body } = await passthrough.send({ ...request, weight }, new AbortController().signal)
    const read = await text(body)
    await until('it is reported', () => requests.length > before)
    return { status, read }
  }
  return { ...passthrough, requests, details, breaker, ask }
}

const responding =
  (status: number, body: string | Buffer, headers: Record<string, string> = {}): ProviderCall['stream'] =>
  async ({ isValid }) => {
    if (!isValid()) throw notSent('x')
    const chunks = async function* () {
      const bytes = Buffer.from(body)
      for (let at = 0; at < bytes.length; at += 9_000) yield bytes.subarray(at, at + 9_000)
    }
    return { status, headers, body: chunks() }
  }

t.test('a request for more than is left takes nothing from others', async t => {
  const { clock, healthy, budget: consumers } = openBudget(t)
  const meanwhile: number[] = []
  const spend: SpendingStore['spend'] = async spending => {
    const reply = await healthy.spend(spending)
    meanwhile.push((await consumers.reserve(1, 'refresh')).points)
    return reply
  }
  const { budget } = budgetOn({ ...healthy, spend }, clock)
  const { send, requests } = passthroughOn(budget, clock, async ({ path }) => {
    throw new Error(`${path} is not to be sent`)
  })
  const refused = { code: 'provider_limited', retryAt: Date.parse('2026-11-21T06:11:02Z') }
  await t.rejects(send(request, new AbortController().signal), refused)
  t.strictSame([meanwhile, requests], [[1], []])
})

t.test('one that is overdue before it is sent costs nothing, and the provider has not failed', async t => {
  const { clock, healthy, budget: consumers } = openBudget(t)
  const ending = new AbortController()
  const overdue = new ProviderError('provider_timeout', 'overdue')
  const spend: SpendingStore['spend'] = async spending => {
    const reply = await healthy.spend(spending)
    ending.abort(overdue)
    return reply
  }
  const { budget } = budgetOn({ ...healthy, spend }, clock)
  const { send, requests } = passthroughOn(budget, clock, async (_request, signal) => {
    throw signal.reason
  })
  await t.rejects(send({ ...request, weight: 60 }, ending.signal), overdue)
  t.strictSame(requests, ['left'])
  t.equal((await consumers.reserve(200, 'cold')).points, 200, 'nothing is spent')
})

t.test('an answer streams on, and costs the whole points of its weight', async t => {
  for (const [weight, used] of [
    [60, 60],
    [61, 63],
    [60.0000000001, 60],
    [1, 3],
    [0, 0],
  ] as const)
    for (const status of [200, 304]) {
      const { budget, clock } = openBudget(t)
      const { ask, requests, details } = passthroughOn(budget, clock, responding(status, 'weather'))
      t.strictSame(await ask(weight), { status, read: 'weather' })
      t.strictSame([requests, details], [['ok'], [[0, true, undefined]]])
      t.strictSame(usedIn(budget.state()), Array(3).fill(used), `${weight}`)
      clock.set('2026-11-21T06:11:20Z')
      t.equal(usedIn(budget.state())[0], 0, 'and nothing in the minute that it did not reach')
    }
})

t.test('a refusal streams on too, and costs and means what it does for cells', async t => {
  const limited = 'Hourly API request limit exceeded.'
  const hourly = (length = 0) => {
    const [begin, end] = [`{"reason":"${limited}`, '"}']
    return begin.padEnd(length - end.length) + end
  }
  const [minute, hour] = ['2026-11-21T06:11:02Z', '2026-11-21T07:00:02Z'].map(at => Date.parse(at))
  for (const [status, body, code, used, circuit, closedUntil, reason] of [
    [500, '{"reason":"it burns"}', 'provider_failing', 1, 'open', null, 'it burns'],
    [404, '', 'provider_denied', 1, 'closed', null],
    [429, hourly(), 'provider_limited', 0, 'closed', hour, limited],
    [429, gzipSync(hourly()), 'provider_limited', 0, 'closed', hour, limited],
    [429, hourly(16_384), 'provider_limited', 0, 'closed', hour, `${limited.padEnd(200)}…`],
    [429, hourly(16_385), 'provider_limited', 0, 'closed', minute],
  ] as const) {
    const { budget, clock } = openBudget(t)
    const headers: Record<string, string> = typeof body === 'string' ? {} : { 'content-encoding': 'gzip' }
    const { ask, requests, details, breaker } = passthroughOn(
      budget,
      clock,
      responding(status, body, headers),
    )
    t.hasStrict(await ask(60), { status, read: String(body) })
    const detail = `the provider answered ${status}${reason ? `: ${reason}` : ''}`
    t.strictSame(details, [[0, true, detail]])
    t.strictSame([requests, breaker.state().state], [[code], circuit])
    t.strictSame(usedIn(budget.state()), Array(3).fill(used), code)
    t.equal(budget.closedUntil(), closedUntil ?? null)
    if (status === 429) t.equal(budget.state().closedBecause, detail)
  }
})

t.test('nothing is sent while the circuit is not closed, also when a probe is due', async t => {
  for (const halfOpenAfterMs of [60_000, 1]) {
    const { budget, clock, state } = openBudget(t)
    const guard = { halfOpenAfterMs }
    const { ask, breaker, requests } = passthroughOn(budget, clock, responding(500, ''), guard)
    t.match(await ask(0), { status: 500 })
    t.equal(breaker.state().state, 'closed', 'a file says nothing of other requests')
    t.match(await ask(3), { status: 500 })
    if (halfOpenAfterMs === 1) await until('a probe is due', () => breaker.isProbeDue())
    const [steps, sent] = [state.steps.length, requests.length]
    const message = halfOpenAfterMs === 1 ? /and the circuit is not closed yet$/ : /and the circuit is open$/
    await t.rejects(ask(3), { code: 'provider_circuit_open', message })
    t.strictSame([state.steps.length, requests.length], [steps, sent])
  }
})

t.test('whoever fails, it costs what the provider may have counted', async t => {
  const abortable =
    (isAnswered: boolean): ProviderCall['stream'] =>
    async ({ isValid }, signal) => {
      isValid()
      const broken = async function* (): AsyncGenerator<Uint8Array> {
        yield Buffer.from('weather')
        await aborted(signal)
        throw signal.reason
      }
      if (isAnswered) return { status: 200, headers: {}, body: broken() }
      await aborted(signal)
      throw signal.reason
    }
  const aborted = (signal: AbortSignal) => signal.aborted || once(signal, 'abort')
  const failing =
    (error: Error, isSent: boolean): ProviderCall['stream'] =>
    async ({ isValid }) => {
      if (isSent) isValid()
      throw error
    }
  const overdue = () => new ProviderError('provider_timeout', 'overdue')
  for (const [stream, reason, outcome, used] of [
    [abortable(true), new Error('left'), 'left', 60],
    [abortable(true), overdue(), 'left', 60],
    [abortable(false), overdue(), 'provider_timeout', 60],
    [failing(new TypeError('a bug'), false), undefined, 'internal', 0],
    [failing(new TypeError('a bug'), true), undefined, 'internal', 60],
    [failing(garbled('wrong_shape', 'odd'), true), undefined, 'provider_garbled', 60],
  ] as const) {
    const { budget, clock } = openBudget(t)
    const { send, requests, breaker } = passthroughOn(budget, clock, stream)
    const ending = new AbortController()
    const answer = send({ ...request, weight: 60 }, ending.signal)
    if (reason) setImmediate(() => ending.abort(reason))
    await t.rejects(answer.then(({ body }) => text(body)))
    await until('it is reported', () => requests.length > 0)
    t.strictSame(requests, [outcome])
    t.strictSame(usedIn(budget.state()), Array(3).fill(used), outcome)
    if (outcome === 'provider_garbled') t.equal(breaker.state().state, 'closed', 'its request may be odd')
  }
})

t.test(
  'a request that nobody waits for reserves nothing, and one held up for too long is not sent',
  async t => {
    const { budget, clock, state } = openBudget(t)
    const { send, requests } = passthroughOn(budget, clock, async (given, signal) => {
      clock.advance(120_000)
      return responding(200, 'weather')(given, signal)
    })
    await t.rejects(send({ ...request, weight: 60 }, AbortSignal.abort(new Error('left'))), {
      message: 'left',
    })
    t.strictSame([state.steps, requests], [[], []])
    await t.rejects(send({ ...request, weight: 60 }, new AbortController().signal), {
      code: 'provider_not_sent',
    })
    t.strictSame(requests, ['provider_not_sent'])
    clock.advance(-120_000)
    t.strictSame(usedIn(budget.state()), [60, 0, 0], 'and costs nothing in windows that are not over')
  },
)

t.test('one request of operators is out at a time', async t => {
  const { budget, clock } = openBudget(t)
  const gate = Promise.withResolvers<void>()
  let out = 0
  const { ask } = passthroughOn(budget, clock, async (given, signal) => {
    out += 1
    if (out === 1) await gate.promise
    return responding(200, 'weather')(given, signal)
  })
  const both = [ask(3), ask(3)]
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  t.equal(out, 1)
  gate.resolve()
  t.match(await Promise.all(both), [{ status: 200 }, { status: 200 }])
})
