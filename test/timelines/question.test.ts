// The name under which a gateway's timelines are cached.

import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { questionIn } from '../../src/gateway/supply.ts'

const questionWith = (env: Record<string, string>) => questionIn(loadConfig({ files: [], env }))

t.test('it changes with what is asked, and with nothing else', async t => {
  // Whoever changes this text empties the caches of all gateways: right only where cached timelines can't be used any more.
  t.equal(questionWith({}), '3853e9ed4134')
  t.equal(questionWith({ ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '7' }), '3853e9ed4134')
  for (const [name, value] of [
    ['ABOHAWA_PROVIDER__BASE_URL', 'https://customer-api.open-meteo.com'],
    ['ABOHAWA_QUOTA__TIME_ZONE', 'Asia/Kathmandu'],
    ['ABOHAWA_WEATHER__HOURLY_HOURS', '168'],
    ['ABOHAWA_CACHE__STALE_FOR', '30h'],
  ] as const)
    t.not(questionWith({ [name]: value }), '3853e9ed4134', name)
})
