// The options of `rehearse` and `whatif` for settings and traffic. Settings of listeners, stores and logs are refused, because both
// commands use their own.

import { collect } from 'abohawa/command-line/quantities.ts'
import type { Terminal } from 'abohawa/command-line/terminal.ts'
import { asUsage, UsageError } from 'abohawa/command-line/usage-error.ts'
import type { Command } from 'commander'
import { type GivenSettings, type SettingCase, settingCases } from '../setting-grid.ts'
import { formatIn, hostOption } from './traffic-options.ts'

export const addSettingOptions = (command: Command): Command =>
  command
    .argument('<files...>', 'traffic files; - is standard input')
    .option('--set <setting=values>', 'values to try, in every combination with other --set', collect)
    .option('--case <settings>', 'one combination: "cache.freshness=age cache.freshFor=1h"', collect)
    .option('--format <name>', 'format of the files (default: detected)', formatIn)
    .addOption(hostOption())

/** @throws UsageError; ConfigError for an invalid configuration */
export const casesIn = async (given: GivenSettings, terminal: Terminal): Promise<SettingCase[]> => {
  const cases = asUsage(() => settingCases(given, terminal.sources))
  // Imported here, so that the other commands start without it.
  const { settingsOfPlace } = await import('../rehearsal/fixture.ts')
  const path = cases.flatMap(({ values }) => Object.keys(values)).find(each => settingsOfPlace.has(each))
  if (path !== undefined)
    throw new UsageError(`${path} can't be varied; give settings of weather, cache, provider and quota`)
  return cases
}
