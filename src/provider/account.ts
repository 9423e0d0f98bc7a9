// What a configuration says of the account at its provider: protocol, horizon and budget. Only this file chooses the protocol.

import { hash } from 'node:crypto'
import { createCalendar } from '../common/calendar.ts'
import type { Config } from '../config/schema.ts'
import { type Horizon, horizonFor, longestUseMs } from '../weather/horizon.ts'
import { Budget, type BudgetOptions, type BudgetSettings } from './budget.ts'
import { createOpenMeteo } from './open-meteo/protocol.ts'
import type { ProviderProtocol } from './protocol.ts'
import type { LedgerParts } from './spending-ledger.ts'

/** How far ahead a gateway of this configuration requests weather. */
export const horizonOf = ({ cache, weather }: Config): Horizon =>
  horizonFor(longestUseMs(cache), weather.hourlyHours)

/** The protocols by their names in the setting `provider.protocol`. */
const protocols = { 'open-meteo': createOpenMeteo } as const

/** The protocol of the provider of this configuration. */
export const protocolIn = (config: Config): ProviderProtocol =>
  protocols[config.provider.protocol]({
    horizon: horizonOf(config),
    calendar: createCalendar(config.quota.timeZone),
  })

/** The budget that gateways of this configuration share. */
export const budgetSettingsIn = ({
  provider: { baseUrl, apiKey, budget, outageShare, totalTimeoutMs },
  redis,
  server,
}: Config): BudgetSettings => ({
  provider: hash('sha256', `${baseUrl} ${apiKey}`).slice(0, 12),
  limits: { minute: budget.perMinute, hour: budget.perHour, day: budget.perDay },
  reserve: budget.reserve,
  keyShare: budget.keyShare,
  outageShare: redis.url === null && !server.reusePort ? null : outageShare,
  longestRequestMs: totalTimeoutMs,
})

/** The budget of this configuration's account. */
export const openBudget = (
  config: Config,
  { instances, ...parts }: LedgerParts & Pick<BudgetOptions, 'instances'>,
  {
    weightPerCell,
    weightOfFailure,
  }: Pick<ProviderProtocol, 'weightPerCell' | 'weightOfFailure'> = protocolIn(config),
): Budget =>
  new Budget({ ...budgetSettingsIn(config), unit: weightPerCell, weightOfFailure, instances }, parts)
