// The cost of a request by its outcome.

import t from 'tap'
import { ProviderError, requestOutcomeOf } from '../../src/provider/errors.ts'

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
