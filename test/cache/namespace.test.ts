// The cache namespace: changes with the provider request, and with nothing else.

import t from 'tap'
import { cacheNamespaceIn } from '../../src/cache/upstream.ts'
import { loadConfig } from '../../src/config/load.ts'

const namespaceWith = (env: Record<string, string>) => cacheNamespaceIn(loadConfig({ files: [], env }))

t.test('the namespace changes with the provider request, and with nothing else', async t => {
  // A change of this text empties the caches of all gateways: right only where cached timelines can no longer be used.
  t.equal(namespaceWith({}), '3853e9ed4134')
  for (const [name, value] of [
    ['ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST', '7'],
    // Timelines of another horizon answer as far as they reach.
    ['ABOHAWA_WEATHER__HOURLY_HOURS', '168'],
    ['ABOHAWA_CACHE__STALE_FOR', '30h'],
  ] as const)
    t.equal(namespaceWith({ [name]: value }), '3853e9ed4134', name)
  for (const [name, value] of [
    ['ABOHAWA_PROVIDER__BASE_URL', 'https://customer-api.open-meteo.com'],
    ['ABOHAWA_QUOTA__TIME_ZONE', 'Asia/Kathmandu'],
  ] as const)
    t.not(namespaceWith({ [name]: value }), '3853e9ed4134', name)
})
