// Checks of the provider: reachable and its clock, by a request that weighs nothing; the key and one point of weather, charged
// to the budget of the fleet; and what is left of the budget.

import type { BudgetReport } from '../admin/budget-admin.ts'
import { parseHttpDate } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { AbohawaError, messageOf } from '../errors.ts'
import type { Budget } from '../provider/budget.ts'
import { OutOfBudgetError } from '../provider/errors.ts'
import { redactedUrl } from '../redacted-url.ts'
import { protocolIn } from '../upstream/account.ts'
import { probeProvider } from '../upstream/provider-probe.ts'
import { type Check, fail, ok, skip, warn } from './check.ts'
import { loadOnePoint } from './one-point.ts'
import { clockCheck } from './redis.ts'

const keyFix = 'Set provider.apiKey (ABOHAWA_PROVIDER__API_KEY) and the provider.baseUrl of its plan.'
const answerWithinMs = 10_000
// The budget charges windows by a clock that may differ by so much.
const toleratedMs = 2_000

/** Whether it answers at all, and what its clock says; weighs nothing. */
export const reachableChecks = async (config: Config, clock: Clock): Promise<Check[]> => {
  const where = redactedUrl(config.provider.baseUrl)
  try {
    const before = clock.now()
    const { status, headers } = await probeProvider(config, answerWithinMs)
    const middle = (before + clock.now()) / 2
    const reported = parseHttpDate(String(headers.date ?? ''))
    const remaining = Object.entries(headers).find(([name]) => /^(x-)?ratelimit-remaining/.test(name))
    const left = remaining ? `, says ${remaining[0]}: ${String(remaining[1]).slice(0, 60)}` : ''
    return [
      status >= 500
        ? fail('provider', `${where} answers ${status}`, 'Wait, or check the status page of the provider.')
        : ok('provider', `${where} answers${left}`),
      Number.isNaN(reported)
        ? skip('provider clock', 'it does not tell its time')
        : // A header has whole seconds.
          clockCheck('provider clock', 'the provider', reported + 500 - middle, toleratedMs),
    ]
  } catch (error) {
    return [
      fail(
        'provider',
        `no answer at ${where}: ${messageOf(error)}`,
        'Check provider.baseUrl, the name server and the firewall.',
      ),
    ]
  }
}

export const keyCheck = async (
  config: Config,
  clock: Clock,
  budget?: Pick<Budget, 'reserve'>,
): Promise<Check> => {
  const name = 'provider key'
  const weight = protocolIn(config).weightPerCell
  try {
    await loadOnePoint(config, clock, budget)
    return ok(
      name,
      `${config.provider.apiKey === null ? 'no key is needed' : 'the key is accepted'}; one point was loaded, which weighs ${weight}`,
    )
  } catch (error) {
    if (error instanceof OutOfBudgetError) return skip(name, 'the budget has no room for one point')
    if (error instanceof AbohawaError && error.code === 'provider_denied')
      return fail(name, messageOf(error), keyFix)
    if (error instanceof AbohawaError && error.code === 'provider_limited')
      return warn(name, messageOf(error), 'Wait for the end of that limit, or take a larger plan.')
    return fail(name, messageOf(error), 'Check provider.baseUrl and the status page of the provider.')
  }
}

/** Checks the rest of the budget, by the counts of the fleet. */
export const budgetCheck = ({ closedUntil, reason, windows, reserve }: BudgetReport): Check => {
  const name = 'budget'
  if (closedUntil !== null)
    return warn(
      name,
      `closed until ${closedUntil}${reason === null ? '' : `: ${reason}`}`,
      'If that limit is wrong or raised: npm run -s abohawa -- budget reopen',
    )
  if (windows.length === 0) return ok(name, 'no limits are configured')
  const left = windows.map(window => `${window.left ?? '?'} of ${window.limit} left this ${window.name}`)
  const low = windows.find(window => window.left !== null && window.left < window.limit * reserve)
  return low === undefined
    ? ok(name, left.join(', '))
    : warn(
        name,
        `${left.join(', ')}: only cells with nothing cached are fetched this ${low.name}`,
        'Stretch freshness (cache.freshFor), use cache.freshness: run, or take a larger plan and raise provider.budget.',
      )
}
