// Without it a cell could go to the wrong upstream, or fail although another upstream has it.

import t from 'tap'
import type { BreakerState } from '../../src/provider/breaker.ts'
import {
  OutOfBudgetError,
  ProviderError,
  type ProviderErrorCode,
  ShareUsedUpError,
} from '../../src/provider/errors.ts'
import { createFailover, soonMs } from '../../src/provider/failover.ts'
import type { Urgency } from '../../src/provider/queue.ts'
import type { Cell, CellId } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'

const dhaka: Cell = { id: '23.8,90.4' as CellId, latitude: 23.8, longitude: 90.4 }
const sylhet: Cell = { id: '24.9,91.9' as CellId, latitude: 24.9, longitude: 91.9 }

/** `roomAt` as of the budget. */
type State = {
  circuit: BreakerState
  openUntil: number | null
  roomAt: { cold: number | null; refresh: number | null }
}

const setUp = (names = ['a', 'b', 'c']) => {
  const waits: number[] = []
  const after = (ms: number, work: () => unknown) => {
    waits.push(ms)
    setImmediate(work)
    return () => {}
  }
  const clock = { ...manualClock(), timers: { every: () => () => {}, after } }
  const asked: string[] = []
  const errors = new Map<string, () => Error>()
  const state = new Map<string, State>()
  const held = new Map<string, ShareUsedUpError>()
  const expedited: string[] = []
  const upstreamOf = (name: string) => {
    const own: State = { circuit: 'closed', openUntil: null, roomAt: { cold: null, refresh: null } }
    state.set(name, own)
    return {
      name,
      account: {
        provider: {
          expedite: () => void expedited.push(name),
          throttled: () => held.get(name),
        },
        breaker: { state: () => ({ state: own.circuit, openUntil: own.openUntil }) },
        budget: { roomAt: (purpose: 'cold' | 'refresh') => own.roomAt[purpose] },
      },
    }
  }
  const failover = createFailover(names.map(upstreamOf), { queueForMs: 200, refusedForMs: 600_000 }, clock)
  return {
    ...{ clock, errors, held, expedited, failover, waits, next: failover.next },
    of: (name: string) => state.get(name) as State,
    /** Who was asked for a cell, in order, and what came of it. */
    load: async (urgency: Urgency = 'cold', cell = dhaka) => {
      asked.length = 0
      const outcome = await failover
        .load(cell, urgency, async ({ name }) => {
          asked.push(name)
          const error = errors.get(name)
          if (error) throw error()
          return name
        })
        .catch(({ message, ...fields }: Error) => ({ message, ...fields }))
      return { outcome, asked: asked.join('') }
    },
  }
}
const failing = (code: ProviderErrorCode, retryAt?: number) => () =>
  new ProviderError(code, `it is ${code}`, retryAt === undefined ? {} : { retryAt })

t.test('a fault of this program is not tried elsewhere', async t => {
  const { errors, load } = setUp()
  errors.set('a', () => new TypeError('a bug'))
  t.hasStrict(await load(), { outcome: { message: 'a bug' }, asked: 'a' })
})

for (const circuit of ['open', 'half-open'] as const)
  t.test(`an upstream whose circuit is ${circuit} is left out, and for a cold cell comes last`, async t => {
    const { of, errors, load } = setUp(['a', 'b'])
    of('a').circuit = circuit
    t.strictSame(await load(), { outcome: 'b', asked: 'b' })
    errors.set('b', failing('provider_failing'))
    t.hasStrict(await load('refresh'), { outcome: { code: 'provider_failing' }, asked: 'b' })
    t.strictSame(await load(), { outcome: 'a', asked: 'ba' })
    of('b').circuit = 'open'
    t.strictSame(await load('refresh'), { outcome: 'a', asked: 'a' }, 'as the only one, where all are')
  })

t.test(
  'a cell that an upstream refused goes to the next one for a while, and other cells do not',
  async t => {
    const { clock, errors, load } = setUp(['a', 'b'])
    errors.set('a', failing('provider_refused'))
    t.strictSame(await load(), { outcome: 'b', asked: 'ab' })
    errors.delete('a')
    t.strictSame(await load(), { outcome: 'b', asked: 'b' })
    t.strictSame(await load('cold', sylhet), { outcome: 'a', asked: 'a' })
    errors.set('b', failing('provider_timeout'))
    t.strictSame(await load(), { outcome: 'a', asked: 'ba' }, 'unless nobody else has it')
    errors.delete('b')
    clock.advance(600_000)
    t.strictSame(await load(), { outcome: 'a', asked: 'a' })
    errors.set('a', failing('provider_refused'))
    await load()
    clock.advance(-3_600_000)
    t.hasStrict(await load(), { asked: 'ab' }, 'a clock that was set back lengthens nothing')
  },
)

t.test('each cell that was refused is remembered, but no more than ten thousand', async t => {
  const { errors, load } = setUp(['a', 'b'])
  const cells = Array.from({ length: 10_001 }, (_, i): Cell => ({ ...dhaka, id: `${i}` as CellId }))
  errors.set('a', failing('provider_refused'))
  for (const cell of cells.slice(0, -1)) await load('cold', cell)
  for (const cell of cells.slice(0, 2)) t.equal((await load('cold', cell)).asked, 'b')
  await load('cold', cells.at(-1))
  t.equal((await load('cold', cells[0])).asked, 'ab', 'then it begins anew')
})

t.test('what nobody waits for leaves a minute alone that is full', async t => {
  const { clock, errors, load } = setUp(['a', 'b'])
  for (const urgency of ['refresh', 'refresh_ahead'] as const) {
    errors.set('a', () => new OutOfBudgetError(clock.now() + 40_000))
    t.hasStrict(await load(urgency), { outcome: { code: 'provider_limited' }, asked: 'a' })
    errors.set('a', () => new ShareUsedUpError('key_a', clock.now() + 40_000))
    t.hasStrict(await load(urgency), { outcome: { code: 'key_share_used_up' }, asked: 'a' })
    errors.set('a', () => new OutOfBudgetError(clock.now() + 2 * 3_600_000))
    t.strictSame(await load(urgency), { outcome: 'b', asked: 'ab' })
    for (const [ms, asked] of [
      [65_000, 'a'],
      [65_001, 'ab'],
    ] as const) {
      errors.set('a', () => new OutOfBudgetError(clock.now() + ms))
      t.equal((await load(urgency)).asked, asked)
    }
  }
  errors.set('a', () => new OutOfBudgetError(clock.now() + 40_000))
  t.strictSame(await load('cold'), { outcome: 'b', asked: 'ab' })
})

t.test('a cold cell waits for a budget where no upstream has room, and no longer than it may', async t => {
  const { clock, errors, load, waits } = setUp(['a', 'b'])
  errors.set('a', () => new OutOfBudgetError(clock.now() + 5_000))
  let tries = 0
  errors.set('b', () => {
    tries += 1
    if (tries === 2) errors.delete('b')
    return new OutOfBudgetError(clock.now() + 30)
  })
  t.strictSame(await load(), { outcome: 'b', asked: 'ababab' })
  t.strictSame(waits.splice(0), [30, 30])
  errors.set('b', () => {
    errors.delete('b')
    return new OutOfBudgetError(clock.now() + 200)
  })
  t.strictSame(await load(), { outcome: 'b', asked: 'abab' })
  waits.length = 0
  errors.set('b', () => new OutOfBudgetError(clock.now()))
  t.hasStrict(await load(), { outcome: { name: 'OutOfBudgetError' }, asked: 'ab'.repeat(11) })
  t.strictSame(waits, Array(10).fill(20), 'a moment each time, where it is always a moment away')
  errors.set('b', () => new OutOfBudgetError(clock.now() + 201))
  t.hasStrict(await load(), {
    outcome: { name: 'OutOfBudgetError', retryAt: clock.now() + 201 },
    asked: 'ab',
  })
})

t.test('failures together: when the first of them can be tried again, or a backoff of their own', async t => {
  const { clock, errors, load } = setUp(['a', 'b'])
  const later = clock.now() + 9_000
  errors.set('a', failing('provider_circuit_open', later))
  errors.set('b', failing('provider_limited', later + 1))
  t.hasStrict((await load()).outcome, {
    ...{ code: 'provider_circuit_open', retryAt: later },
    message: 'a: it is provider_circuit_open; b: it is provider_limited',
  })
  errors.set('b', failing('provider_timeout'))
  t.hasStrict((await load()).outcome, { code: 'provider_timeout', retryAt: undefined })
  errors.set('a', failing('provider_failing'))
  t.hasStrict((await load()).outcome, { code: 'provider_failing' }, 'of equal ones the first')
  const alone = setUp(['a'])
  alone.errors.set('a', failing('provider_failing'))
  t.hasStrict((await alone.load()).outcome, { message: 'it is provider_failing' })
  errors.set('a', failing('provider_circuit_open', later))
  errors.set('b', () => new ShareUsedUpError('key_a', later + 9))
  t.hasStrict((await load()).outcome, { name: 'ShareUsedUpError', consumer: 'key_a', retryAt: later })
  errors.set('a', failing('provider_timeout'))
  errors.set('b', () => new ShareUsedUpError('key_a', clock.now() + 3_600_000))
  const soon = { name: 'ShareUsedUpError', retryAt: clock.now() + 60_000 }
  t.hasStrict((await load()).outcome, soon, 'the one that failed may answer before the share has room')
})

for (const code of ['provider_refused', 'provider_too_much'] as const)
  t.test(`${code} is no last word while another upstream may have the cell`, async t => {
    const { clock, errors, load } = setUp(['a', 'b'])
    const later = clock.now() + 9_000
    errors.set('a', failing(code))
    errors.set('b', failing('provider_limited', later))
    const limited = { code: 'provider_limited', retryAt: later, message: `a: it is ${code}; b: ` }
    t.match((await load()).outcome, limited)
    errors.set('b', () => new OutOfBudgetError(clock.now() + 3_600_000))
    t.hasStrict((await load()).outcome, { name: 'OutOfBudgetError', retryAt: clock.now() + 600_000 })
    const left = setUp(['a', 'b'])
    left.errors.set('a', failing(code))
    left.of('b').circuit = 'open'
    for (const openUntil of [later, null]) {
      left.of('b').openUntil = openUntil
      t.hasStrict(await left.load('refresh_ahead'), {
        outcome: { code: 'provider_circuit_open', retryAt: openUntil ?? undefined },
        asked: 'a',
      })
      left.clock.advance(600_000)
    }
    left.of('b').circuit = 'closed'
    left.errors.set('b', failing(code))
    t.hasStrict((await left.load()).outcome, { code }, 'that of all is')
  })

t.test('a key is held back where no upstream that can be asked has room for it', async t => {
  const { clock, held, of, failover } = setUp(['a', 'b'])
  const until = (name: string, ms: number) => held.set(name, new ShareUsedUpError('key_a', clock.now() + ms))
  until('a', 90_000)
  t.equal(failover.throttled('key_a', 'refresh'), undefined)
  until('b', 70_000)
  t.equal(failover.throttled('key_a', 'refresh')?.retryAt, clock.now() + 70_000)
  held.delete('b')
  of('b').circuit = 'open'
  t.equal(failover.throttled('key_a', 'refresh')?.retryAt, clock.now() + 90_000, 'the other can’t be asked')
  of('a').circuit = 'open'
  t.equal(failover.throttled('key_a', 'refresh'), undefined, 'nor can any, so that all may be')
  until('b', 80_000)
  t.equal(failover.throttled('key_a', 'refresh')?.retryAt, clock.now() + 80_000)
})

t.test('a key is held back exactly where a load for it ends without weather', async t => {
  const { clock, held, errors, failover, load } = setUp(['a', 'b'])
  for (const urgency of ['cold', 'refresh', 'refresh_ahead'] as const)
    for (const a of [100, 40_000, 90_000])
      for (const b of [0, 150, 40_000, 90_000]) {
        // The one that waits gets weather then.
        const begun = clock.now()
        for (const [name, ms] of Object.entries({ a, b })) {
          const error = new ShareUsedUpError('key_a', begun + ms)
          if (ms === 0) {
            held.delete(name)
            errors.delete(name)
            continue
          }
          held.set(name, error)
          let tries = 0
          errors.set(name, () => {
            tries += 1
            if (ms <= 200 && tries === 1) errors.delete(name)
            return error
          })
        }
        const throttled = failover.throttled('key_a', urgency)
        const { outcome } = await load(urgency)
        t.equal(throttled === undefined, typeof outcome === 'string', `${urgency}, ${a} ms and ${b} ms`)
      }
})

t.test('the first upstream with a closed circuit and room beyond its reserve loads next', async t => {
  const { clock, of, next } = setUp()
  const named = (withinMs?: number) => next(withinMs).upstream?.name
  t.equal(named(), 'a')
  of('a').circuit = 'half-open'
  t.equal(named(), 'b')
  const inAMinute = clock.now() + soonMs
  of('b').roomAt = { cold: inAMinute, refresh: inAMinute }
  t.equal(named(), 'c', 'for want of a minute too')
  t.equal(named(soonMs), 'b', 'unless that is waited for')
  of('c').roomAt = { cold: null, refresh: inAMinute + 1 }
  t.hasStrict(next(), { upstream: { name: 'c' }, room: 'reserve' })
  of('a').circuit = 'closed'
  t.equal(named(), 'a', 'which goes behind what has room for all')
  of('a').roomAt = { cold: clock.now() + 1, refresh: clock.now() + 1 }
  t.equal(named(), 'c')
  of('a').roomAt = { cold: clock.now(), refresh: clock.now() }
  t.equal(named(), 'a')
})

t.test('where no upstream would load, the obstacle that ends first says why', async t => {
  const { clock, of, next } = setUp(['a', 'b'])
  const until = clock.now() + 3_600_000
  of('a').circuit = 'open'
  of('b').roomAt = { cold: until, refresh: until }
  t.strictSame(next(), { upstream: undefined, room: 'none', code: 'provider_circuit_open', until: null })
  of('a').circuit = 'closed'
  of('a').roomAt = { cold: until + 1, refresh: until + 1 }
  t.strictSame(next(soonMs), { upstream: undefined, room: 'none', code: 'provider_limited', until })
})

t.test('a queued cell is expedited wherever it is queued', async t => {
  const { expedited, failover } = setUp()
  failover.expedite(dhaka, 'key_a')
  t.strictSame(expedited, ['a', 'b', 'c'])
})
