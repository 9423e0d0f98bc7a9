// Every live setting is changed, one after the other, while consumers send requests: none of them fails. That each change
// takes effect is shown in live-settings.test.ts.

import t from 'tap'
import { effectOf, valuesOf } from '../../src/config/values.ts'
import { startProvider } from '../support/provider-process.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t, undefined, null)
const consumers = 8
/** Requests that are answered between two changes. */
const requestsBetween = 16

/** A value that a gateway can serve all traffic with, in place of its own. */
const others: Readonly<Record<string, string>> = {
  // More reaches beyond the hours that are fetched, which needs a restart.
  'cache.freshForAtMost': '6h',
  'cache.staleFor': '6h',
  'server.cors.origins': '["https://a.example"]',
  'log.level': 'warn',
}
// The files of TLS are null here: a change of a certificate from null needs a restart, and the ticket key is nothing without one.
const without = ['server.tls.cert', 'server.tls.key', 'server.tls.ticketKey']

const otherThan = (path: string, shown: string): string => {
  const known = others[path]
  if (known !== undefined) return known
  if (shown === 'true' || shown === 'false') return String(shown === 'false')
  const [, amount = '', unit = ''] = /^([\d.]+)(ms|s|m|h|MiB)?$/.exec(shown) ?? []
  t.ok(amount, `${path} is ${shown}, which this test changes`)
  if (unit) return `${Number(amount) * 2}${unit}`
  // Shares stay below 1, and counts grow.
  return Number(amount) <= 1 && shown !== '1' ? String(Number(amount) / 2) : String(Number(amount) + 1)
}

t.test('no request fails while every live setting is changed and changed back', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock: { now: () => Date.now() },
    env: {
      ABOHAWA_QUOTA__TIERS__ENTERPRISE: '1000000',
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '5000',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
      // So that half of it is a share too.
      ABOHAWA_LOG__ACCESS_SHARE: '0.5',
    },
  })
  const paths = [
    '/weather/district/3026',
    '/weather/district/3026?lang=en',
    '/forecast/district/2015',
    '/locations?type=district',
  ]
  const failed: unknown[] = []
  let answered = 0
  let isOver = false
  const consume = async (): Promise<void> => {
    while (!isOver) {
      const path = paths[answered % paths.length] ?? ''
      const { status, text } = await gateway
        .get(path)
        .catch((error: Error) => ({ status: 0, text: String(error) }))
      if (status !== 200) failed.push([path, status, text.slice(0, 200)])
      answered += 1
    }
  }
  const consuming = Array.from({ length: consumers }, consume)
  const served = async (): Promise<void> => {
    const before = answered
    await until('requests are answered', () => answered >= before + requestsBetween || failed.length > 0)
  }
  await served()

  const live = valuesOf(gateway.config).filter(
    ({ path, setting }) => effectOf(setting) === 'live' && !without.includes(path),
  )
  t.ok(live.length > 15, `${live.length} settings`)
  for (const { path, shown } of live) {
    const value = shown === 'null' ? '' : shown
    for (const next of [otherThan(path, shown), value]) {
      t.equal(await gateway.set({ [path]: next }), 'applied', `${path}: ${next}`)
      await served()
    }
    t.strictSame(failed, [], path)
  }
  isOver = true
  await Promise.all(consuming)
  t.ok(answered > live.length * requestsBetween, `${answered} requests`)
  t.strictSame(
    gateway.logged.filter(({ msg }) => String(msg).startsWith('needs a restart')),
    [],
  )
})
