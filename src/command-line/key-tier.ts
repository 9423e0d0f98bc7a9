// The option `--tier` of commands that make keys.

import { quoted } from '../common/outside-text.ts'
import { tiersOf } from '../keys/test-keys.ts'
import type { Terminal } from './terminal.ts'
import { UsageError } from './usage-error.ts'

/** @throws UsageError for a tier that is not configured */
export const checkTier = (terminal: Terminal, tier: string): void => {
  const tiers = Object.keys(tiersOf(terminal.config().quota))
  if (!tiers.includes(tier))
    throw new UsageError(`--tier must be one of ${tiers.join(', ')}, got ${quoted(tier)}`)
}
