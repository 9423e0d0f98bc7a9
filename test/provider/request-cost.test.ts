// The cost of a request by its outcome.

import t from 'tap'
import { ProviderError } from '../../src/provider/errors.ts'
import { costOf, requestOutcomeOf } from '../../src/provider/request-cost.ts'

t.test(
  'an answer costs its weight, a failure what failures weigh, a refusal by the limits nothing, and what is unknown all of it',
  t => {
    t.equal(costOf('answered', 192_000, 1_000), 192_000)
    t.equal(costOf('unknown', 192_000, 1_000), 192_000)
    t.equal(costOf('failed', 192_000, 1_000), 1_000)
    t.equal(costOf('limited', 192_000, 1_000), 0)
    t.equal(costOf('unsent', 192_000, 1_000), 0)
    t.end()
  },
)

t.test('an error decides the outcome that the cost depends on', t => {
  const outcome = (code: ProviderError['code']) => requestOutcomeOf(new ProviderError(code, 'sample'))
  t.equal(outcome('provider_timeout'), 'unknown')
  t.equal(outcome('provider_cut_off'), 'unknown')
  t.equal(outcome('provider_failing'), 'failed')
  t.equal(outcome('provider_limited'), 'limited')
  t.equal(outcome('provider_busy'), 'limited')
  t.equal(requestOutcomeOf(new TypeError('of our own')), 'unknown')
  t.end()
})
