// Without it an operator's request could take budget that it does not use, and consumers would be refused.

import t from 'tap'
import { createBreaker } from '../../src/provider/breaker.ts'
import { createPassthrough } from '../../src/provider/passthrough.ts'
import type { SpendingStore } from '../../src/stores/spending-store.ts'
import { openMeteo } from '../support/open-meteo.ts'
import { budgetOn, openBudget } from './budget-set-up.ts'

t.test('a request for more than is left takes nothing from others', async t => {
  const { clock, healthy, budget: consumers } = openBudget(t)
  const meanwhile: number[] = []
  const spend: SpendingStore['spend'] = async spending => {
    const reply = await healthy.spend(spending)
    meanwhile.push((await consumers.reserve(1, 'refresh')).points)
    return reply
  }
  const requests: string[] = []
  const passthrough = createPassthrough(() => 1_000, {
    call: {
      stream: async ({ path }) => {
        throw new Error(`${path} is not to be sent`)
      },
    },
    inTurn: work => work(),
    protocol: openMeteo,
    breaker: createBreaker({ after: 1, halfOpenAfterMs: 1, halfOpenAfterAtMostMs: 1 }, clock, () => {}),
    budget: budgetOn({ ...healthy, spend }, clock).budget,
    clock,
    observer: { request: outcome => requests.push(outcome) },
  })
  const request = { method: 'GET', path: '/v1/forecast', headers: {}, weight: 601 } as const
  const refused = { code: 'provider_limited', retryAt: Date.parse('2026-11-21T06:11:02Z') }
  await t.rejects(passthrough.send(request, new AbortController().signal), refused)
  t.strictSame([meanwhile, requests], [[1], []])
})
