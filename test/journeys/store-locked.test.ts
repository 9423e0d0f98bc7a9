// Another program holds the write lock of the embedded store: requests are admitted from local allowances at once, as without
// Redis, and are all in the store once the lock is free.

import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

t.test('a lock of another program delays no request, and costs no unit', async t => {
  const provider = await startProvider(t, [], null)
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock: systemClock,
    env: { ABOHAWA_PROVIDER__BUDGET__PER_DAY: '600' },
  })
  const cell = (lat: number) => gateway.get(`/weather/coords/${lat}/90.4`)
  t.match(await cell(23.8), { status: 200, headers: { 'x-ratelimit-remaining': '99999' } })
  const other = new DatabaseSync(gateway.config.store.path)
  t.teardown(() => other.close())
  const readyz = async () => (await sendRequest(`${gateway.opsUrl}/readyz`)).text

  other.exec('BEGIN IMMEDIATE')
  const startedAt = performance.now()
  for (let i = 0; i < 20; i++) {
    t.equal((await cell(23.8)).status, 200)
    t.equal((await sendRequest(`${gateway.opsUrl}/livez`)).status, 200)
  }
  t.equal((await cell(24.8)).status, 200, 'a new cell too')
  t.match(await readyz(), /counted locally: .* another program holds its lock/)
  // One wait alone had five seconds, and there were three for a batch.
  t.ok(performance.now() - startedAt < 4_900)
  other.exec('ROLLBACK')

  await until('the units are counted', async () => /counted in the store/.test(await readyz()))
  const { days } = await gateway.administration.usage(gateway.keyIds.enterprise ?? '', 1)
  t.match(days, [{ used: 22 }], 'nothing is lost')
  t.match(
    gateway.logged.find(line => line.outage === 'store'),
    { reason: /another program holds its lock$/ },
  )
})
