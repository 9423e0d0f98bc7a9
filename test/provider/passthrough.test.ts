// Without it an operator's request could take budget that it does not use, and consumers would be refused.

import t from 'tap'
import type { Clock } from '../../src/common/clock.ts'
import { createBreaker } from '../../src/provider/breaker.ts'
import type { Budget } from '../../src/provider/budget.ts'
import { ProviderError } from '../../src/provider/errors.ts'
import { createPassthrough } from '../../src/provider/passthrough.ts'
import type { ProviderCall } from '../../src/provider/provider-call.ts'
import type { SpendingStore } from '../../src/stores/spending-store.ts'
import { openMeteo } from '../support/open-meteo.ts'
import { budgetOn, openBudget } from './budget-set-up.ts'

const request = { method: 'GET', path: '/v1/forecast', headers: {}, weight: 601 } as const

const passthroughOn = (budget: Budget, clock: Clock, stream: ProviderCall['stream']) => {
  const requests: string[] = []
  const passthrough = createPassthrough(() => 1_000, {
    call: { stream },
    inTurn: work => work(),
    protocol: openMeteo,
    breaker: createBreaker({ after: 1, halfOpenAfterMs: 1, halfOpenAfterAtMostMs: 1 }, clock, () => {}),
    budget,
    clock,
    observer: { request: outcome => requests.push(outcome) },
  })
  return { ...passthrough, requests }
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
