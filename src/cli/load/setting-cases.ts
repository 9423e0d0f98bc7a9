// The settings of `--set` and `--case`, as `rehearse` and `whatif` take them: whatever is wrong with them is a usage error, and
// those of listeners, stores and logs are refused, which both replace by their own.

import { type GivenSettings, type SettingCase, settingCases } from '../../config/setting-grid.ts'
import { withoutEffect } from '../../config/without-effect.ts'
import type { Terminal } from '../terminal.ts'
import { asUsage, UsageError } from '../usage-error.ts'

/**
 * Says which settings change nothing in any case that gives them.
 * @throws UsageError; ConfigError where the configuration itself is at fault
 */
export const casesIn = async (given: GivenSettings, terminal: Terminal): Promise<SettingCase[]> => {
  const cases = asUsage(() => settingCases(given, terminal.sources))
  // Imported here, so that the other commands start without it.
  const { settingsOfPlace } = await import('../../load/rehearsal/fixture.ts')
  const path = cases.flatMap(({ values }) => Object.keys(values)).find(each => settingsOfPlace.has(each))
  if (path !== undefined)
    throw new UsageError(
      `${path} is the same for every setting that is tried; allowed: settings of weather, cache, provider and quotas`,
    )
  for (const [path, reason] of idleSettings(cases)) terminal.remark(`${path} has no effect: ${reason}`)
  return cases
}

const idleSettings = (cases: readonly SettingCase[]): ReadonlyMap<string, string> => {
  const idle = new Map<string, string>()
  for (const path of new Set(cases.flatMap(({ values }) => Object.keys(values)))) {
    const reasons = cases
      .filter(({ values }) => path in values)
      .map(({ config }) => withoutEffect(config).get(path))
    const [reason] = reasons
    if (reason !== undefined && !reasons.includes(undefined)) idle.set(path, reason)
  }
  return idle
}
