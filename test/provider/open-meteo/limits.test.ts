// The provider's limits in code and in the default configuration.

import t from 'tap'
import { loadConfig } from '../../../src/config/load.ts'
import { freeLimits, maxPointsPerRequest } from '../../../src/provider/open-meteo/limits.ts'
import { openMeteo } from '../../support/open-meteo.ts'

const configOf = (env: Record<string, string>) => loadConfig({ files: [], env }).provider

t.test('without configuration a gateway spends what the free service allows', async t => {
  const { perMinute, perHour, perDay } = configOf({}).budget
  t.strictSame({ minute: perMinute, hour: perHour, day: perDay }, freeLimits)
})

t.test('a request may be set to hold as many points as the provider takes, and no more', async t => {
  const most = (points: number) => configOf({ ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: String(points) })
  t.equal(openMeteo.maxCellsPerRequest, maxPointsPerRequest)
  t.equal(most(maxPointsPerRequest).maxPointsPerRequest, 1_000)
  t.throws(() => most(maxPointsPerRequest + 1), { code: 'bad_input' })
})
