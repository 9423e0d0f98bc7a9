// The metrics of several upstreams by name. With one upstream they have no series, except the upstream in use. The metrics of the provider
// are always those of the primary upstream.

import type { OpenUpstream } from '../provider/accounts.ts'
import type { Next } from '../provider/failover.ts'
import { ranges } from '../weather/ranges.ts'
import type { Counters } from './counters.ts'
import { pairs, providerFailures } from './label-values.ts'

export type UpstreamMetrics = ReturnType<typeof createUpstreamMetrics>

/** What is read at each scrape. */
export type WatchedUpstreams = {
  readonly accounts: {
    readonly all: readonly {
      readonly name: string | undefined
      readonly account: Pick<OpenUpstream['account'], 'breaker' | 'budget'>
    }[]
    next(): Next<Pick<OpenUpstream, 'name'>>
  }
}

/** @param names of the upstreams, the first one first; none where there is one */
export const createUpstreamMetrics = (
  { countBy, gauge, gaugeBy }: Pick<Counters, 'countBy' | 'gauge' | 'gaugeBy'>,
  names: readonly string[],
) => {
  let watched: WatchedUpstreams | undefined
  const of = (read: (each: WatchedUpstreams['accounts']['all'][number]['account']) => number) => () =>
    (watched?.accounts.all ?? []).flatMap(({ name, account }) =>
      name === undefined ? [] : [[name, read(account)] as const],
    )
  const request = countBy(
    'abohawa_upstream_requests_total',
    'Requests to an upstream by outcome: ok, or the error.',
    ['upstream', 'outcome'],
    pairs(names, ['ok', 'left', ...providerFailures]),
  )
  const loaded = countBy(
    'abohawa_upstream_loads_total',
    'Cells loaded from an upstream.',
    ['upstream'],
    names.map(name => [name]),
  )
  const oddValue = countBy(
    'abohawa_provider_odd_values_total',
    'Impossible values from an upstream, served as null.',
    ['variable'],
    Object.keys(ranges).map(variable => [variable]),
  )
  gauge(
    'abohawa_upstream_in_use',
    'Upstream in use: 0 for the primary, 1 for the first fallback, -1 for none.',
    () => {
      const next = watched?.accounts.next()
      if (next && !next.upstream) return -1
      return Math.max(0, names.indexOf(next?.upstream?.name ?? ''))
    },
  )
  gaugeBy(
    'upstream',
    'abohawa_upstream_circuit_closed',
    '1 while the circuit to an upstream is closed.',
    of(({ breaker }) => Number(breaker.state().state === 'closed')),
  )
  gaugeBy(
    'upstream',
    'abohawa_upstream_budget_used_share',
    "Spent share of an upstream's fullest budget window; NaN without limits.",
    of(({ budget }) => {
      const shares = budget.state().windows.map(({ used, limit }) => used / limit)
      return shares.length === 0 ? Number.NaN : Math.max(...shares)
    }),
  )
  gaugeBy(
    'upstream',
    'abohawa_upstream_limited_until_timestamp_seconds',
    "End of an upstream's closure after its 429; 0 when open.",
    of(({ budget }) => (budget.closedUntil() ?? 0) / 1000),
  )
  return {
    names,
    request,
    loaded,
    oddValue,
    watch: (upstreams: WatchedUpstreams): void => {
      watched = upstreams
    },
  }
}
