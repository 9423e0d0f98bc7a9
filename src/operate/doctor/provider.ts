// Checks of the provider: reachable, its clock, the key, one point charged to the shared budget, and the budget left.

import { shipped } from '../../catalogue/snapshot-reader.ts'
import { parseHttpDate } from '../../common/calendar.ts'
import type { Clock } from '../../common/clock.ts'
import { AbohawaError, messageOf } from '../../common/errors.ts'
import { redactedUrl } from '../../common/redacted-url.ts'
import type { Config } from '../../config/schema.ts'
import { protocolIn } from '../../provider/account.ts'
import { createBreaker } from '../../provider/breaker.ts'
import type { Budget } from '../../provider/budget.ts'
import { Provider } from '../../provider/client.ts'
import { OutOfBudgetError } from '../../provider/errors.ts'
import { createProviderCall } from '../../provider/provider-call.ts'
import { createGrid } from '../../weather/cell.ts'
import type { BudgetReport } from '../budget-admin.ts'
import { type Finding, fail, ok, skip, warn } from './check.ts'
import { aheadOf, clockFinding } from './machine.ts'

const keyFix = 'Set provider.apiKey (ABOHAWA_PROVIDER__API_KEY) and the provider.baseUrl of its plan.'
// The budget charges windows by a clock that may differ by so much.
const toleratedMs = 2_000

/** One request that weighs nothing, without the circuit breaker. @throws Error when no answer came within the time */
const probe = async ({ provider, doctor }: Config, protocol: ReturnType<typeof protocolIn>, clock: Clock) => {
  const { request } = await import('undici')
  const { path } = protocol.runs.requestFor(provider.runs.model)
  const before = clock.now()
  const { statusCode, headers, body } = await request(provider.baseUrl.replace(/\/+$/, '') + path, {
    headers: { accept: protocol.accept, ...(provider.apiKey ? protocol.keyHeaders(provider.apiKey) : {}) },
    signal: AbortSignal.timeout(doctor.answerWithinMs),
  })
  const after = clock.now()
  await body.dump()
  return { status: statusCode, headers, before, after }
}

/** Whether it answers at all, and what its clock says; weighs nothing. Never rejects. */
export const reachProvider = async (
  config: Config,
  clock: Clock,
): Promise<{ readonly found: Finding; readonly clock: readonly Finding[] }> => {
  const where = redactedUrl(config.provider.baseUrl)
  try {
    const { status, headers, before, after } = await probe(config, protocolIn(config), clock)
    const reported = parseHttpDate(String(headers.date ?? ''))
    return {
      found:
        status >= 500
          ? fail(`${where} answers ${status}`, 'Wait, or check the status page of the provider.')
          : ok(`${where} answers`),
      clock: Number.isNaN(reported)
        ? [skip('the provider sends no date')]
        : // A header has whole seconds.
          [clockFinding('the provider', aheadOf([reported, reported + 1_000], [before, after]), toleratedMs)],
    }
  } catch (error) {
    return {
      found: fail(
        `no answer at ${where}: ${messageOf(error)}`,
        'Check provider.baseUrl, the name server and the firewall.',
      ),
      clock: [skip('the provider is unavailable')],
    }
  }
}

/** Loads one point, charged to the budget, which shows that the key is accepted. */
export const keyFinding = async (
  config: Config,
  clock: Clock,
  budget: Pick<Budget, 'reserve'>,
): Promise<Finding> => {
  const weight = protocolIn(config).weightPerCell
  try {
    await loadOnePoint(config, clock, budget)
    return ok(
      `${config.provider.apiKey === null ? 'no key is needed' : 'the key is accepted'}; one point was loaded, which weighs ${weight}`,
    )
  } catch (error) {
    if (error instanceof OutOfBudgetError) return skip('the budget has no room for one point')
    if (error instanceof AbohawaError && error.code === 'provider_denied')
      return fail(messageOf(error), keyFix)
    if (error instanceof AbohawaError && error.code === 'provider_limited')
      return warn(messageOf(error), 'Wait for the end of that limit, or take a larger plan.')
    return fail(messageOf(error), 'Check provider.baseUrl and the status page of the provider.')
  }
}

const nobody = () => {}

/** Shows that the provider answers and accepts the key. Caches nothing, and charges only the given budget. @throws ProviderError */
const loadOnePoint = async (config: Config, clock: Clock, budget: Pick<Budget, 'reserve'>): Promise<void> => {
  // The provider has weather for the whole globe, so the shipped bounds always work.
  const { bounds } = shipped
  const protocol = protocolIn(config)
  const call = createProviderCall(config.provider, { protocol, clock })
  const provider = new Provider(
    { ...config.provider, retries: 0, queueForMs: 0 },
    {
      call,
      protocol,
      breaker: createBreaker(config.provider.breaker, clock, nobody),
      budget,
      recentConsumers: () => [],
      clock,
      observer: { request: nobody, refused: nobody, odd: nobody, loaded: nobody },
    },
  )
  const cell = createGrid(config.cache.cellDegrees).cellOf(
    (bounds.south + bounds.north) / 2,
    (bounds.west + bounds.east) / 2,
  )
  try {
    await provider.load(cell)
  } finally {
    await provider.close()
    await call.close()
  }
}

/** Checks the rest of the budget, by the counts of the fleet. */
export const budgetFinding = ({ closedUntil, reason, windows, reserve }: BudgetReport): Finding => {
  if (closedUntil !== null)
    return warn(
      `the budget is closed until ${closedUntil}${reason === null ? '' : `: ${reason}`}`,
      'If that limit is wrong or raised: npm run -s abohawa -- budget reopen',
    )
  if (windows.length === 0) return ok('no limits are configured')
  const left = windows.map(window => `${window.left} of ${window.limit} left this ${window.name}`)
  const low = windows.find(window => window.left < window.limit * reserve)
  return low === undefined
    ? ok(left.join(', '))
    : warn(
        `${left.join(', ')}: only cells with nothing cached are fetched this ${low.name}`,
        'Stretch freshness (cache.freshFor), use cache.freshness: run, or take a larger plan and raise provider.budget.',
      )
}
