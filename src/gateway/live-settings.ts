// Applies a changed configuration while the gateway runs, after checking the certificate and settings that need a restart.

import type { buildApi } from '../api/api.ts'
import type { openUpstream } from '../cache/upstream.ts'
import type { Clock } from '../common/clock.ts'
import { requireServable } from '../config/certificate-check.ts'
import { filesNamedIn, type LoadedConfig } from '../config/load.ts'
import { createReload, type ReloadObserver } from '../config/reload.ts'
import type { Config } from '../config/schema.ts'
import { watchFiles } from '../config/watch.ts'
import type { createAuthenticate } from '../keys/authentication.ts'
import { tiersOf } from '../keys/test-keys.ts'
import { settingsThatNeedRestart } from '../provider/accounts.ts'
import type { Log } from '../telemetry/log.ts'

/** Where the configuration is read, also on reload. `read` throws ConfigError. */
export type ConfigSource = { read(): LoadedConfig; readonly files: readonly string[] }

/** The parts that follow a change. */
type LiveParts = {
  readonly api: Pick<ReturnType<typeof buildApi>, 'prepareTls' | 'apply'>
  readonly authenticate: Pick<ReturnType<typeof createAuthenticate>, 'applyTiers'>
  readonly upstream: Pick<ReturnType<typeof openUpstream>, 'applyBudget' | 'applyFreshness'>
  readonly setAccessLog: (next: Config) => void
}

/** @param source without it, the configuration stays as it is */
export const createLiveSettings = (
  config: Config,
  {
    clock,
    log,
    source,
  }: { readonly clock: Clock; readonly log: Log; readonly source?: ConfigSource | undefined },
  observer: ReloadObserver,
) => {
  let parts: LiveParts | undefined
  const reload = createReload({
    running: config,
    read: source?.read ?? (() => ({ config, origins: new Map(), removed: [] })),
    needRestart: next => settingsThatNeedRestart(config, next),
    prepare: async ({ server }) => {
      const { tls } = server
      const change = parts?.api.prepareTls(tls)
      if (!change) return []
      const isRenewal = change.replaced.includes('certificate')
      const faults = isRenewal ? await requireServable(server, clock.now()) : []
      return [
        change.use,
        ...change.replaced.map(what => () => log.info(tls, `${what} replaced`)),
        ...faults.map(({ detail, fix }) => () => {
          log.warn({ reason: detail, next: fix }, 'new certificate has a fault')
        }),
      ]
    },
    apply: (next, isChanged) => {
      if (!parts) return
      if (isChanged('log.')) {
        log.level = next.log.level
        parts.setAccessLog(next)
      }
      if (isChanged('quota.')) parts.authenticate.applyTiers(tiersOf(next.quota), next.quota.rates)
      if (isChanged('provider.')) parts.upstream.applyBudget(next)
      if (isChanged('cache.')) parts.upstream.applyFreshness(next)
      if (isChanged('server.') || isChanged('quota.')) parts.api.apply({ ...next.server, ...next.quota })
    },
    clock,
    observer,
  })
  return {
    reload,
    /** From now on changes take effect in these parts. */
    watch: (live: LiveParts) => {
      parts = live
      return watchFiles({
        files: () => (source ? [...source.files, ...filesNamedIn(reload.running())] : []),
        pollMs: source ? config.config.pollEveryMs : null,
        onChange: reload.now,
        onQuiet: reload.again,
      })
    },
  }
}
